"""The record of how exact norms are, against the code that measures them."""

from decimal import localcontext

import numpy as np

from subnorm_lab.experiments import accuracy


def test_the_record_is_what_our_norms_do_now() -> None:
    record = accuracy.recorded()
    assert set(record["errors"]) > set(accuracy.installed_norms())
    for name in ("sn.layer_norm", "st.layer_norm"):
        for mean, recorded in zip(accuracy.MEANS, record["errors"][name], strict=True):
            assert max(recorded, accuracy.error(accuracy.installed_norms()[name], accuracy.rows_about(mean))) < 4


def test_an_error_is_counted_in_units_of_the_largest_entry() -> None:
    x = accuracy.rows_about(0.0)
    with localcontext(prec=70):
        right = np.array([accuracy.exact(row, centred=True) for row in x])
    assert accuracy.error(lambda _: right, x) < 1e-8  # float64's own rounding
    unit = 2.0**-23 * np.abs(right.astype(float)).max(axis=-1, keepdims=True)
    np.testing.assert_allclose(accuracy.error(lambda _: right.astype(float) + 3 * unit, x), 3, rtol=1e-6)
