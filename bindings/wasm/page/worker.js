/** Compacts a transcript away from the page, which stays usable meanwhile. */
import { load } from "../index.js";

const loaded = load();

self.addEventListener("message", async ({ data: { bytes, keep, strategy } }) => {
  try {
    const { transcript, report } = (await loaded).compact(bytes, { keep, strategy });
    self.postMessage({ transcript, report });
  } catch (error) {
    self.postMessage({ error: error.message });
  }
});
