// Asks for confirmation in a dialog: the form of the confirmation page, without leaving this one.

const dialog = document.getElementById("dialog");

export async function confirmInDialog(link) {
  try {
    const url = new URL(link.href);
    url.searchParams.set("fragment", "1");
    const answer = await fetch(url, { signal: AbortSignal.timeout(10000), headers: { Accept: "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const form = page.querySelector("form.confirm");
    if (!answer.ok || !form) throw new Error("no form");
    dialog.replaceChildren(document.importNode(form, true));
    dialog.querySelector("[data-cancel]").addEventListener("click", close);
    dialog.setAttribute("aria-labelledby", form.querySelector("h2").id);
    dialog.showModal();
  } catch {
    location.assign(link.href); // the page says what is wrong
  }
}

function close(event) {
  event.preventDefault();
  dialog.close();
}
