// A formula wider than its column scrolls; only then must the keyboard be able to reach it. (The theme does tables.)
{
  // Widths are read when the browser has laid out the page anyway, all of them before the first is marked. What is
  // observed is the formula itself: the fonts come late, and are wider.
  const observer = new ResizeObserver((entries) => {
    const boxes = entries.map(({ target }) => target.closest(".eqn"));
    const wide = boxes.map((box) => box.scrollWidth > box.clientWidth + 1);
    boxes.forEach((box, k) => {
      for (const [name, value] of [["tabindex", "0"], ["role", "group"], ["aria-label", "scrolls sideways"]])
        if (wide[k]) box.setAttribute(name, value);
        else box.removeAttribute(name);
    });
  });
  document.querySelectorAll(".eqn > *").forEach((formula) => observer.observe(formula));
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
