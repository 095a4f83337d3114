"""The lines of a stored measurement that say where it was made."""

import re

from helpers import small_book


def test_a_machine_is_folded_below_a_figure_and_heads_a_table(tmp_path):
    machine = "AMD <EPYC>, one thread, 2026-11-26, commit aae9a30, load 0.3\npython 3.11.7, numpy 2.4.6\n"
    stdout = {"output_type": "stream", "name": "stdout"}
    cells = [small_book.code({**stdout, "text": text}) for text in (machine, 2 * machine, machine + "\nforward 1.0\n")]
    (tmp_path / "index.md").write_text("```{toctree}\nnotebooks/03-norms\n```\n", "utf-8")
    small_book.notebook(tmp_path, *cells)
    assert small_book.build(tmp_path) == ""
    html = small_book.html(tmp_path, "notebooks/03-norms")
    one = "AMD &lt;EPYC&gt;, one thread, 2026-11-26"
    assert re.findall(r"<summary>Measured on (.*?)</summary>", html) == [one, f"{one}; {one}"]
    assert html.count("commit aae9a30") == 4
