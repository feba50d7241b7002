// Shows the value under the pointer. The numbers are those of the table below the charts.

const left = 48, right = 352; // of the plot, in units of the drawing

export function hover(event) {
  const svg = event.target.closest?.("svg[data-chart]");
  if (!svg) {
    for (const other of document.querySelectorAll("svg[data-chart]")) leave(other);
    return;
  }
  const rows = document.querySelectorAll("#history-numbers tbody tr");
  if (rows.length === 0) return;
  const box = svg.getBoundingClientRect();
  const x = ((event.clientX - box.left) / box.width) * 360;
  const part = Math.min(1, Math.max(0, (x - left) / (right - left)));
  const index = Math.round(part * (rows.length - 1));
  const row = rows[rows.length - 1 - index]; // the table has the newest first
  const at = left + (rows.length > 1 ? index / (rows.length - 1) : 1) * (right - left);
  const cursor = svg.querySelector(".cursor");
  cursor.setAttribute("x1", at);
  cursor.setAttribute("x2", at);
  cursor.classList.add("on");
  svg.parentElement.querySelector("output").textContent =
    `${row.cells[Number(svg.dataset.chart) + 1].textContent} at ${row.cells[0].textContent}`;
}

function leave(svg) {
  const cursor = svg.querySelector(".cursor.on");
  if (!cursor) return;
  cursor.classList.remove("on");
  svg.parentElement.querySelector("output").textContent = "";
}
