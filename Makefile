# Short names for the commands of `run`, which does the work.
.PHONY: assess test lint docs check

assess test lint docs check:
	./run $@
