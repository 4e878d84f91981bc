"""Real data that come with scikit-learn."""

from typing import Any

from jaxgen.datasets.arrays import from_arrays
from jaxgen.types import Data


def diabetes() -> Data:
    """Disease progression of 442 diabetes patients (Efron, Hastie, Johnstone & Tibshirani 2004, "Least angle
    regression").

    The 10 inputs are in their own units: age (years), sex (coded 1, 2), bmi (body mass index), bp (average blood
    pressure) and six blood serum values, s1 to s6: total cholesterol, LDL, HDL, total / HDL, log triglycerides,
    glucose. They are strongly correlated: s1 with s2 at 0.90, condition number 22 after standardisation.

    Returns:
      Regression data, x [442, 10], y [442, 1]: a score of the progression after one year, 25 to 346.
    """
    return _bundled("diabetes", "disease progression after one year", scaled=False)


def breast_cancer() -> Data:
    """Diagnosis of 569 breast masses (Wolberg, Street & Mangasarian 1995, UCI "Breast Cancer Wisconsin (Diagnostic)").

    The 30 inputs are mean, standard error and worst of ten measures of the cell nuclei in an image, in their own units.

    Returns:
      Classification data, x [569, 30], y [569, 2]: malignant (212 cases), benign (357).
    """
    return _bundled("breast_cancer", "diagnosis")


def wine() -> Data:
    """Cultivar of 178 Italian wines (Aeberhard & Forina 1992, UCI "Wine").

    The 13 inputs are chemical measures in their own units, from hue (about 1) to proline (about 750).

    Returns:
      Classification data, x [178, 13], y [178, 3]: class_0 (59 cases), class_1 (71), class_2 (48).
    """
    return _bundled("wine", "cultivar")


def digits() -> Data:
    """Digits in 1797 handwritten images (Alpaydin & Kaynak 1998, UCI "Optical Recognition of Handwritten Digits", test
    part).

    The 61 inputs are grey values, 0 to 16, of 8 x 8 pixels; three that are 0 in every image are left out.

    Returns:
      Classification data, x [1797, 61], y [1797, 10]: the digits 0 to 9, 174 to 183 cases each.
    """
    return _bundled("digits", "digit", constant="drop")


def _bundled(name: str, target: str, constant: str = "raise", **options: Any) -> Data:
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name}")(**options)
    classes = tuple(str(name) for name in bunch.get("target_names", ()))
    return from_arrays(
        bunch.data,
        bunch.target,
        map(str, bunch.feature_names),
        target,
        "classification" if classes else "regression",
        constant,
        classes or None,  # in the order of the labels 0, 1, ...
    )
