// A formula wider than its column scrolls; only then must the keyboard be able to reach it. (The theme does tables.)
{
  const mark = () => document.querySelectorAll(".eqn").forEach((box) => {
    if (box.scrollWidth > box.clientWidth + 1) {
      box.tabIndex = 0;
      box.setAttribute("role", "group");
      box.setAttribute("aria-label", "scrolls sideways");
    } else {
      box.removeAttribute("tabindex");
      box.removeAttribute("role");
      box.removeAttribute("aria-label");
    }
  });
  addEventListener("load", mark);
  addEventListener("load", () => document.fonts.ready.then(mark)); // the fonts of formulas come late, and are wider
  addEventListener("resize", mark);
}

// Paper is light, whatever the screen shows.
{
  const root = document.documentElement.dataset;
  let shown;
  matchMedia("print").addEventListener("change", ({ matches: printing }) => {
    if (printing) shown = root.theme;
    root.theme = printing ? "light" : shown;
  });
}

// A drawer of a phone gives the focus back to the button that opened it.
for (const side of ["primary", "secondary"]) {
  document.getElementById(`pst-${side}-sidebar-modal`)?.addEventListener("close", () => {
    document.querySelector(`button.${side}-toggle`).focus();
  });
}
