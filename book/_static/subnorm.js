// A formula, listing or table that is wider than its column scrolls, and then needs keyboard access.
{
  const BOXES = ".eqn, pre, .cell_output > .output, .pst-scrollable-table-container";
  // Read widths after the browser has laid out that part of the page, and all of them before marking any. Observe the
  // contents of a box too: fonts load late, and change its width.
  const observer = new ResizeObserver((entries) => {
    const sized = entries.flatMap(({ target }) => [target, target.parentElement]);
    const boxes = [...new Set(sized)].filter((box) => box.matches(BOXES));
    const wide = boxes.map((box) => box.scrollWidth > box.clientWidth + 1);
    boxes.forEach((box, k) => {
      for (const [name, value] of [["tabindex", "0"], ["role", "group"], ["aria-label", "scrolls sideways"]])
        if (wide[k]) box.setAttribute(name, value);
        else box.removeAttribute(name);
    });
  });
  const watch = (part) => part.querySelectorAll(BOXES).forEach((box) => {
    observer.observe(box);
    if (box.firstElementChild) observer.observe(box.firstElementChild);
  });
  watch(document);
  document.addEventListener("contentvisibilityautostatechange", ({ target, skipped }) => { if (!skipped) watch(target) });
}

// On the first interaction lay out the whole page, so that nothing shifts while it is read, and jumps land right.
// The theme scrolls its sidebar: without capture, only scrolling of the page itself reaches the window.
for (const [sign, capture] of [["scroll", false], ["pointerdown", true], ["keydown", true], ["click", true]])
  addEventListener(sign, () => document.documentElement.classList.remove("fresh"), { once: true, capture });

// Highlight the current section in the page contents where they are beside the text. On a phone they are hidden, and
// scrollspy would lay out the whole page before it can be used.
if (matchMedia("(min-width: 1200px)").matches) document.body.dataset.bsSpy = "scroll";

// Print in the light theme, whatever the screen shows.
{
  const root = document.documentElement.dataset;
  let shown;
  matchMedia("print").addEventListener("change", ({ matches: printing }) => {
    if (printing) shown = root.theme;
    root.theme = printing ? "light" : shown;
  });
}

// Closing a drawer on a phone returns the focus to the button that opened it, or follows a link within the page.
for (const side of ["primary", "secondary"]) {
  const drawer = document.getElementById(`pst-${side}-sidebar-modal`);
  let chosen = null;
  drawer?.addEventListener("click", ({ target }) => {
    chosen = target.closest("a[href^='#']");
    if (chosen) drawer.close(); // then the browser follows the link
  });
  drawer?.addEventListener("close", () => {
    if (!chosen) document.querySelector(`button.${side}-toggle`).focus();
    chosen = null;
  });
}
