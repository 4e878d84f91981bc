"""Notebooks run, and stand in the repository with their outputs."""

import warnings
from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


SMALLER = {
    "03_three_kinds_of_networks": {"passes=20_000": "passes=10_000"},
    "11_prediction_intervals": {"steps=3000": "steps=300"},
    "12_tuning_honestly": {"sets=200": "sets=20", "tuning.pays(30,": "tuning.pays(4,", "0.5, 20)": "0.5, 4)"},
    "15_a_run_on_a_cluster": {"steps=1500": "steps=500"},
    "13_network_against_forest": {"n_estimators=100": "n_estimators=10", "resamples=50": "resamples=25"},
}
"""What a notebook says, and what it is run with here, where it takes minutes."""

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@every_notebook
def test_notebook_stands_with_its_outputs(path):
    cells = code(nbformat.read(path, as_version=4))
    assert all(cell.execution_count for cell in cells), "commit the notebook executed"
    assert any("image/png" in output.get("data", {}) for cell in cells for output in cell.outputs), (
        "commit the notebook with its figure"
    )


@pytest.mark.slow
@pytest.mark.timeout(900)  # many programs are compiled
@every_notebook
def test_notebook_runs(path, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the notebook client, not of jaxgen
        from nbclient import NotebookClient

        notebook = nbformat.read(path, as_version=4)
        for said, smaller in SMALLER.get(path.stem, {}).items():
            assert any(said in cell.source for cell in code(notebook))
            for cell in code(notebook):
                cell.source = cell.source.replace(said, smaller)
        fresh = NotebookClient(
            notebook,
            timeout=600,
            kernel_name="python3",
            resources={"metadata": {"path": str(tmp_path)}},
        ).execute()
    outputs = [output for cell in code(fresh) for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"]
