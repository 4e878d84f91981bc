"""Notebooks run, and stand in the repository with their outputs."""

import warnings
from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_and_stands_with_its_outputs(path, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the notebook client, not of jaxgen
        from nbclient import NotebookClient

        notebook = nbformat.read(path, as_version=4)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        assert all(cell.execution_count for cell in code), "commit the notebook executed"
        assert any("image/png" in output.get("data", {}) for cell in code for output in cell.outputs), (
            "commit the notebook with its figure"
        )
        fresh = NotebookClient(
            notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
        ).execute()
    assert not [
        output
        for cell in fresh.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "error" or output.get("name") == "stderr"
    ]
