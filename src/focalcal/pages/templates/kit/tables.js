"use strict";
/* Tables that a press on a heading sorts: ascending, descending, then as they came. What is missing stays last. */
const Sorting = (() => {
  const NEXT = { none: "ascending", ascending: "descending", descending: "none" };

  /* The exact number where the cell has one, else the number that its text begins with; NaN if it has none. */
  function number(cell) {
    if ("value" in cell.dataset) return Number(cell.dataset.value);
    return Number.parseFloat(cell.textContent.trim().replace(/^\u2212/, "-"));
  }

  const missing = (cell) => ["", "-", "\u2013"].includes(cell.textContent.trim());

  function compared(cells) {
    const present = cells.filter((cell) => !missing(cell));
    const numeric = present.length > 0 && present.every((cell) => !Number.isNaN(number(cell)));
    const order = new Intl.Collator("en", { numeric: true });
    return numeric ? (a, b) => number(a) - number(b) : (a, b) => order.compare(a.textContent, b.textContent);
  }

  function sort(table, column, direction) {
    const body = table.tBodies[0];
    const rows = [...body.rows].sort((a, b) => a.dataset.place - b.dataset.place);
    if (direction !== "none") {
      const compare = compared(rows.map((row) => row.cells[column]));
      const sign = direction === "ascending" ? 1 : -1;
      rows.sort((a, b) => {
        const [one, other] = [a.cells[column], b.cells[column]];
        return missing(one) - missing(other) || (missing(one) ? 0 : sign * compare(one, other));
      });
    }
    body.append(...rows);
  }

  function prepare(table) {
    [...table.tBodies[0].rows].forEach((row, place) => { row.dataset.place = place; });
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      heading.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const direction = NEXT[heading.getAttribute("aria-sort")];
        headings.forEach((one) => one.setAttribute("aria-sort", one === heading ? direction : "none"));
        sort(table, column, direction);
      });
    });
  }

  return { start: () => document.querySelectorAll("table.sortable").forEach(prepare) };
})();
