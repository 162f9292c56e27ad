"use strict";
/* What can be taken away: tables and charts as files made in the browser. */
const Downloads = (() => {
  const LOOK = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linejoin", "opacity",
    "font-family", "font-size", "font-weight", "font-style", "text-anchor", "dominant-baseline", "visibility"];
  const SHARP = 2; // dots of a picture per pixel

  /* Text that begins like a spreadsheet's formula gets an apostrophe; numbers, of which -Infinity is text here, do not. */
  const inert = (value) => (
    typeof value === "string" && /^[=+\-@\t\r]./s.test(value) && Number.isNaN(Number(value)) ? `'${value}` : value
  );
  const quoted = (value) => {
    const text = value === null || value === undefined || Number.isNaN(value) ? "" : String(inert(value));
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const csv = (rows) => rows.map((row) => `${row.map(quoted).join(",")}\n`).join("");

  function save(content, name, kind) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type: kind }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  /* A copy that needs no style sheet, on the ground of the page. */
  function alone(svg) {
    const copy = svg.cloneNode(true);
    const copies = copy.querySelectorAll("*");
    svg.querySelectorAll("*").forEach((shape, at) => {
      const style = getComputedStyle(shape);
      LOOK.forEach((name) => copies[at].setAttribute(name, style.getPropertyValue(name)));
      ["tabindex", "data-tip"].forEach((name) => copies[at].removeAttribute(name));
    });
    const { width, height } = svg.viewBox.baseVal;
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    const ground = Svg.element(null, "rect", { width, height, fill: getComputedStyle(document.body).backgroundColor });
    copy.insertBefore(ground, copy.firstChild);
    return new XMLSerializer().serializeToString(copy);
  }

  async function png(svg) {
    const address = URL.createObjectURL(new Blob([alone(svg)], { type: "image/svg+xml" }));
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [svg.viewBox.baseVal.width * SHARP, svg.viewBox.baseVal.height * SHARP];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(address);
    return new Promise((done) => { canvas.toBlob(done, "image/png"); });
  }

  return { csv, save, alone, png };
})();
