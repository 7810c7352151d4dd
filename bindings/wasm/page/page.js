/** Reads the chosen file, has a worker compact it, and offers the result. Texts of a transcript are never used as markup. */

const element = (id) => document.getElementById(id);
const worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
let file = null;
let address = null;

function status(text, isError = false) {
  element("status").textContent = text;
  element("status").classList.toggle("error", isError);
}

function choose(chosen) {
  file = chosen;
  element("run").disabled = !file;
  status(file ? `${file.name}: ${file.size.toLocaleString()} bytes` : "");
}

element("file").addEventListener("change", (event) => choose(event.target.files[0] ?? null));
for (const name of ["dragover", "dragleave", "drop"]) {
  element("drop").addEventListener(name, (event) => {
    event.preventDefault();
    element("drop").classList.toggle("over", name === "dragover");
    if (name === "drop") choose(event.dataTransfer.files[0] ?? null);
  });
}

element("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  element("run").disabled = true;
  element("figures").hidden = true;
  element("download").hidden = true;
  status("compacting ..");
  try {
    const bytes = new Uint8Array(await file.arrayBuffer());
    worker.postMessage({ bytes, keep: element("keep").value, strategy: element("strategy").value }, [bytes.buffer]);
  } catch (error) {
    // The file was moved or changed after it was chosen.
    status(error.message, true);
    element("run").disabled = false;
  }
});

worker.addEventListener("error", (event) => {
  status(`the library could not be loaded: ${event.message ?? "see the console"}`, true);
});

worker.addEventListener("message", ({ data }) => {
  element("run").disabled = false;
  if (data.error !== undefined) {
    status(data.error, true);
    return;
  }
  const { transcript, report } = data;
  for (const what of ["messages", "tokens"]) {
    for (const when of ["before", "after"]) {
      element(`${what}-${when}`).textContent = report[`${what}_${when}`].toLocaleString();
    }
  }
  element("figures").hidden = false;
  if (address !== null) URL.revokeObjectURL(address);
  address = URL.createObjectURL(new Blob([transcript], { type: "application/octet-stream" }));
  const name = file.name.replace(/(\.jsonl?)?$/, ".compacted$1");
  Object.assign(element("download"), { href: address, download: name, hidden: false });
  status(report.goal_missed ? "done; what is protected is larger than the goal" : "done");
});
