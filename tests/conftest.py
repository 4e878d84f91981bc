"""Strict settings for every test: no implicit rank or type promotion, in 32 and in 64 bits; and programs that are
compiled once for all tests, workers and calls.
"""

import gc
import os
import re
from pathlib import Path

import jax
import jaxtyping
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

from jaxgen.engine import program

os.environ.setdefault("MPLBACKEND", "Agg")
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
KEPT = {
    "jax_compilation_cache_dir": str(Path(__file__).parents[1] / ".cache" / "tests"),
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": 0,
}
"""Tests leave the user's folders alone: all that they compile, and that programs do which they start, is kept here."""
for name, value in KEPT.items():
    jax.config.update(name, value)
    os.environ[name.upper()] = str(value)

OPTIMISED = ("test_assess", "test_documents", "test_neal", "test_simulate_arms", "test_simulate_bank")
"""Files whose programs are compiled with XLA's optimisations: what users see first, and simulations of thousands of
cases. The others compile in a third of the time without.
"""
MAPS = Path("/proc/self/maps")
MOST_MAPS = 20_000
"""Programs are dropped when the process has more memory maps than that. Linux allows 65,530, a program takes up to 500.
"""
states = {}
"""Of the generator RANDOM of a file of tests, by the file, as they were when it had been imported."""
now = {"programs": 0, "plain": False}
"""Programs compiled since the maps were last counted; and whether they are compiled without optimisations."""


SLOW = re.compile(
    "|".join(
        (
            # whole pages, real and simulated data, and counts of how often something random happens
            r"documents.*readme_runs_and",
            r"delve_table.*(as_hard_for_a_linear_method|on_the_real_data)",
            r"interval.*(independent_simulation|naive_t_covers)",
            r"multiplicity.*(max_t_of_independent|family_wise_error)",
            r"resampled.*no_more_often_than_promised",
            r"hierarchical.*(another_sampler|interval_covers|many_rows_and_data_sets|drawn_together)",
            r"hostile_statistics.*hierarchical",
            r"conjugate.*(trained_as_well_as_by_scipy\[CG|mlp_ese_1_learns)",
            # what compiles long, and has a sibling with other parameters that always runs
            r"(wrap|neal|simulate_\w+)\.py.*(32bit|-32\])",
            r"logistic\.py.*(does_not_suit|every_data_set|start_together.*(0\.001|1e-12)|separable_rows.*False)",
            r"logistic\.py.*(real_data.*0\.001|scikit_learn.*(0\.01|30\.0)|a_class_fail.*1\.0-)",
            r"logistic\.py.*(on_their_own.*(x25|x70|3\])|even_of_nan.*ridge=1\.0)",
            r"conjugate\.py.*(change_no_neighbour_and_end|weights_are_absence.*(PerTask|batch_norm)|start_is_where)",
            r"bayes\.py.*that_of_quadrature",
            r"predictive\.py.*with_their_noise",
            r"experiment\.py.*does_the_same_again",
            r"adaptive\.py.*trained_anew\[inputs",
            r"learners\.py.*(own_answer|weight_zero).*(Neighbours|Descent|Conjugate|Bayes).*32bit",
            r"learners\.py.*(absence_even_of_nan.*Ensemble|loop_over_slices.*(Ensemble|Scaled))",
            r"minimised\.py.*gradient_vanishes.*(Conjugate|Normalised\(base=Logistic)",
            r"precision\.py.*(precision_of_classifiers.*Normalised|matter_to_normalised_networks.*(how|folds))",
            r"units\.py.*would_vanish.*(1e\+25|1e-30-Early)",
            r"wrap\.py.*(portions\[folds|first_members)",
            r"wrapper\.py.*(made_small_passes_through|starts_of_members.*False|batches_and_noise)",
            r"simulate_bank\.py.*(exact_zeros\[(32nh|8nh|8fm|8nm)|axis_of_sets|key_decides)",
            r"simulate_arms\.py.*(sets_are_cases_in_a_row\[pumadyn|equations\[32nm)",
            r"simulate_arms\.py.*(share_that_it_leaves|p-u-m-a-d-y-n-3-2)",
            r"logistic\.py.*(unknowns.*3\]|touch_on_the_border|absence_even_of_nan.*(ridge=0.3|-2\])|too_few_steps)",
            r"network\.py.*absent_cases_change_nothing.*(32|network1)",
            r"neal\.py.*member_of_an_ensemble\[(1|2)",
            r"conjugate\.py.*(BFGS|draw_are_refused|ends_where_its_rule)",
            r"descent\.py.*(correlations_in_the_cases|shorter_trainings)",
            r"(minimised|approximate)\.py.*(without_a_minimum_are_warned|networks_of_the_package)",
            r"simulate_arms\.py.*(noise_free.*kin|uniform_in_delves.*32)",
            r"(resampled|plot_tasks)\.py.*(depend_on_their_size|run_into_each_other)",
            r"wrap(per)?\.py.*(starts_of_members|diverges_at_once)",
            # processes of their own, and commands
            r"delve_run\.py.*(that_of_the_ensemble|reported_raw|what_else|loop_over_instances)",
            r"delve_command\.py.*families_are_simulated",
            r"command_line\.py.*every_scheme_runs.*(k-fold|leave-one-out|balanced)",
            r"logistic\.py.*(linear_programme.*(two|three) classes|gives_what_a_loop.*ridge=(1.0|0.3).*-(2|3)\])",
            r"neighbours\.py.*(loop_over_leave_one_out.*32bit|units_of_their_own.*12-|share_their_cases.*12-)",
            r"hostile_command\.py.*(closed standard|both closed|full device|help for a reader|letters)",
            r"hostile_delve\.py.*two_processes",
            r"kept\.py.*(user_decides_otherwise|other_files|longest_time)",
            # double precision, where single precision is in `./run test`
            r"(logistic|conjugate|learners|neighbours|minimised|newton|descent|network)\.py.*64bit",
            r"minimised\.py.*(gradient_vanishes.*ridge=0\.[05]\)---|no_minimum_of_its_own|linear_networks)",
            r"multiplicity\.py.*(statsmodels\[(tiny|one|ends|ties)|every_pair.*holm|its_definition\[4-True)",
            r"command_line\.py.*(and_is_recorded|raises_does_not_lose|a_target_of_words)",
            r"hostile_command\.py.*reader that has gone",
            r"algebraic\.py.*(takeuchis|leave_one_out_is_press.*ridge|programs.*compile_once)",
            r"algebraic_programs\.py.*(compile_once|are_freed)",
            r"approximate\.py.*(falls_with_the_square|is_retraining_where)",
            r"runs\.py.*(data_sets\[.*-3\]|Descent-(predictions|rows)|several_plans|same_one_way|in_threads)",
            r"(resampled|learning_curve|estimate)\.py.*(sample_there_is|spread_over_data_sets|is_that_of_scipy)",
            # chains of networks, whose laws the quick level tries by quadrature and one step at a time
            r"bayes\.py.*(joint_law|wrong_shape_of_a_gibbs|keeps_its_promises|relevances_tell)",
            r"bayes_draws\.py.*(averages_of_the_draws|went_wrong)",
            r"bayes_prior\.py.*top_precisions.*(-3\.75|0\.25|-0\.2|-15\.75)",
            r"bayes_sampler\.py.*(law_stays_as_it_is.*0\.9|place_is_not_drawn)",
            r"bayes_convergence\.py.*of_arviz\[case[13]",
            r"predictive\.py.*(members_are_mixed|score_of_a_mixture)",
            r"drawn\.py.*rows_of_a_part_only",
            r"learners\.py.*(own_answer|loop_over_slices|weight_two).*(Tuned|RidgePerInput)",
            r"simulate_arms\.py.*(lagranges_equations\[8nm-2|inputs\[pumadyn|independent\[pumadyn-8fm)",
            r"units\.py.*stopped",
            # seconds each, beside others that see most of the same mistakes
            r"precision\.py.*(classifiers.*ridge=0\.0|as_numpy.*\[0\.0|tolerance_of_rank\[32bit|agree_on_hard_inputs)",
            r"precision\.py.*what_double_precision_gives.*(Neighbours|Ridge\(\)|Mean|how=)",
            r"precision\.py.*what_double_precision_gives.*(intercept=False|minimum_norm)",
            r"wrapper\.py.*(digit_of_what_is_learned\[(EarlyStopped.*28|Neighbours)|by_task_or_as_is_asked)",
            r"wrapper\.py.*(pass_through\[(normalised|augmented|scaled)|get_the_fits_of_each\[(delve|none))",
            r"interrupted\.py.*(hang\[diagnose|forked_process)",
            r"drawn\.py.*(same_weights_give\[(leave_out|mostly)|reads_it_again\[bootstrap|whole\[(leave_out|mostly))",
            r"wrap\.py.*(path_of_a_normalised|patience|column_of_task_numbers)",
            r"wrap\.py.*portions_are_random",
            r"units\.py.*(come_back_in_the_units|are_refused\[1e-30-Neigh|is_refused\[a loss)",
            r"plot_tasks\.py.*legible\[(5-8|5-5|1-2)",
            r"tuned\.py.*(share_has_its_share|of_a_loop.*5|of_equal_size)",
            r"experiment\.py.*(passengers|relative_to_itself|called_by_the_word)",
            r"predictive\.py.*score_of_classes",
            r"bayes\.py.*(classes_are_predicted|go_wrong)",
            r"simulate_arms\.py.*(moments_are.*(n-h|n-m|f-h|f-m)|only_theta5|kin_of_32|no_more_than)",
            r"simulate_arms\.py.*leaves_its_share.*-m\]",
            r"external\.py.*(numbers_do_not_depend|logistic_regressions_agree|cross_val_score)",
            r"predict\.py.*(neither_chunks|rows_are_those_of_assess\[(Neighbours|Normalised))",
            r"runs\.py.*(parts_of_bootstrap|of_several_data_sets|only_some_data_sets|does_not_fit_is_halved)",
            r"resampled\.py.*(fails_for_the_median|one_value_out_at_random)",
            r"simulate_cover\.py.*(probabilities_are_those|both_precisions)",
            r"descent\.py.*(factors_are_shares|touch_only_cases_in_use\[correlation)",
            r"minimised\.py.*(takeuchis|exceed_the_apparent|newton_step_are_retraining)",
            r"network\.py.*(change_nothing\[network2|same_perceptron\[module[023]|column_of_tasks_trains)",
            r"delve_run\.py.*(quasi_f|of_another_year)",
            r"varfis1994\.py.*p_values_are",
            r"command_line\.py.*(sentence\[a list|refused\[(loss|plan)|written\[figure|saved\[mean|help_prints_it)",
            r"simulate\.py.*(exact_law\[(64bit|32bit-50)|fpe_in_the)",
            r"hostile_statistics\.py.*(estimate\.mixed|worth\.datamodels)",
            r"bayes_prior\.py.*wide_as_it_says",
            r"bayes_sampler\.py.*seven_steps.*\[4\]",
            r"plot_manner\.py.*(labels\[learning_curve|labels\[precision)",
            r"report\.py.*larger_area",
            r"strata\.py.*coverage_is_that",
            r"ratios\.py.*skill_score",
            r"conformal\.py.*covered_as_promised\[jackknife",
            r"logistic_cases\.py.*(correlated-True|True-alike-(2|3)-plain|leave_out_more_than|low rank-False)",
            r"logistic_cases\.py.*(one_column_of_targets|units-2-plain)",
            r"bayes\.py.*(move_with_their_weights|trajectories_leave_unsaid|is_always_zero|classes_in_one_column)",
            r"neighbours\.py.*(smallest_of_numbers|on_a_grid.*(True-whole|at_most.*whole))",
            r"neighbours\.py.*(of_their_own.*-30-|in_blocks_get.*1\])",
            r"logistic\.py.*(many_coefficients.*True|ridge_is_its_matrix|filled_up.*False|one start-(norm|a weak))",
            r"learners\.py.*loop_over_slices.*(Bayes|AdaptivePenalties)",
            r"pieces\.py.*in_halves\[Normalised",
            r"wrapper\.py.*(by_the_cases_they_leave_out.*True|conjugate_gradients.*150)",
            r"tuned_rows\.py.*(one_by_one.*base=Logistic|new_cases_are_predicted)",
            r"bayes_sampler\.py.*moves_by_the_step",
            r"simulate_bank\.py.*mean_zero\[8nm",
            r"filled_rows\.py.*(than cases, normalised-folds|of_a_pipeline.*90, 3\)-True)",
            r"wide\.py.*few left out-(3-(True|False)|2-True)",
            r"ridge\.py.*not_the_best\[30",
            r"logistic_rows\.py.*8000-12-4-plain",
            r"leaves\.py.*two inputs-256",
        )
    )
)
"""Tests that `./run test --slow` runs and `./run test` does not, by the times that they were measured to take; others
are marked where they stand.
"""


def pytest_collection_modifyitems(config, items):
    for item in items:
        if SLOW.search(item.nodeid):
            item.add_marker(pytest.mark.slow)
    if config.getoption("jaxtyping_packages"):  # with annotations off, a test is the one that `./run test` runs
        same = {item for item in items if "own_messages" in item.fixturenames and not item.get_closest_marker("slow")}
        config.hook.pytest_deselected(items=list(same))
        items[:] = [item for item in items if item not in same]


def pytest_collection_finish():
    """What was imported stays until the end, so that to look through it for cycles again and again takes a tenth of all
    the time, and finds nothing.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_configure(config):
    jax.monitoring.register_event_duration_secs_listener(count)


def count(event, duration, **details):
    now["programs"] += event == "/jax/core/compile/backend_compile_duration"


def drop_programs():
    program.forget()
    jax.clear_caches()


@pytest.fixture(params=[32, 64], ids=["32bit", "64bit"])
def dtype(request):
    """Runs a test in both precisions; the floating type that fits then have."""
    with jax.enable_x64(request.param == 64):
        yield np.dtype(f"float{request.param}")


@pytest.fixture
def own_messages():
    """Turns the enforcement of annotations off, which would speak before the messages of the package."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, for commands whose figures are not looked at: they are saved empty."""
    save = Figure.savefig
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Figure, "savefig", lambda _, *where, **how: save(Figure(figsize=(0.1, 0.1)), *where, **how))
    yield tmp_path
    plt.close("all")


@pytest.fixture(autouse=True)
def same_numbers(request):
    """Every test draws the same numbers from its file's generator, whichever tests ran before it."""
    generator = getattr(request.module, "RANDOM", None)
    if generator is not None:
        generator.bit_generator.state = states.setdefault(request.module.__name__, generator.bit_generator.state)


@pytest.fixture(scope="module", autouse=True)
def compiled_for_this_file(request):
    """Programs of one file serve the next, unless it compiles them otherwise."""
    plain = request.module.__name__.rpartition(".")[2] not in OPTIMISED
    if now["plain"] != plain:
        drop_programs()
        jax.config.update("jax_disable_most_optimizations", plain)
        now["plain"] = plain


@pytest.fixture(autouse=True)
def few_programs():
    """Files take turns in a worker, so programs are dropped by what they take, not by file."""
    yield
    if now["programs"] >= 40:
        now["programs"] = 0
        if MAPS.exists() and MAPS.read_bytes().count(b"\n") > MOST_MAPS:
            drop_programs()
