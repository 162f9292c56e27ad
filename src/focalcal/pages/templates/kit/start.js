"use strict";
/* What every page does once its scripts are there: colours, sorting, words on hover, files, the address, paper. */
const Kit = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  let opened = [];

  function beforePrint() {
    Theme.force("light");
    opened = [...document.querySelectorAll("details.printed:not([open])")];
    opened.forEach((details) => { details.open = true; });
    Charts.forPaper(true);
  }

  function afterPrint() {
    opened.forEach((details) => { details.open = false; });
    Theme.force(null);
    Charts.forPaper(false);
  }

  /* The link of the section that is in sight stands out. */
  function follow() {
    const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.getAttribute("href").slice(1), link]));
    const seen = new IntersectionObserver((entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => {
      links.forEach((link, id) => {
        if (id === entry.target.id) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      });
    }), { rootMargin: "-15% 0px -75% 0px" });
    links.forEach((_, id) => seen.observe(document.getElementById(id)));
  }

  function start({ address = true } = {}) {
    Theme.start();
    Sorting.start();
    Tips.start();
    document.querySelectorAll("button[data-table]").forEach((button) => {
      button.hidden = false;
      const name = button.dataset.table;
      button.addEventListener("click", () => Downloads.save(data.tables[name], `${name}.csv`, "text/csv"));
    });
    follow();
    State.start(address);
    // Enter in a field would send the form; a handler in the HTML is what the page's policy forbids.
    document.addEventListener("submit", (event) => event.preventDefault());
    window.addEventListener("beforeprint", beforePrint);
    window.addEventListener("afterprint", afterPrint);
  }

  return { data, start };
})();
