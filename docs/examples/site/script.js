// Checks that all parts of this page have arrived, shows it, and leaves the outcome on the root element for whoever
// looks at the document: data-checks, data-failed.
"use strict";

const checks = [
  ["The script runs.", () => true],
  ["The style sheet is applied.", hasStyle],
  ["The pictures are there.", hasPictures],
  ["The font of the headline is loaded.", hasFont],
  ["A directory without its slash redirects to the page in it.", hasRedirection],
  ["No request has failed.", hasNoFailure],
];

function hasStyle() {
  return getComputedStyle(document.documentElement).getPropertyValue("--styled").trim() === "yes";
}

async function hasPictures() {
  const pictures = [...document.images];
  await Promise.all(pictures.map((picture) => picture.decode()));
  return pictures.length === 2 && pictures.every((picture) => picture.naturalWidth > 0);
}

async function hasFont() {
  const fonts = await document.fonts.load('1rem "Penstock Dots"', "PENSTOCK");
  return fonts.length === 1 && fonts[0].status === "loaded";
}

async function hasRedirection() {
  const response = await fetch("about?from=script", { cache: "no-store" });
  const text = await response.text();
  return response.ok && response.redirected && response.url.endsWith("/about/?from=script") && text.includes("<h1>About</h1>");
}

// The browser's own list of everything that this page asked for.
function hasNoFailure() {
  const entries = performance.getEntriesByType("resource");
  return entries.length > 0 && entries.every((entry) => (entry.responseStatus ?? 200) < 400);
}

async function passes(check) {
  try {
    return await check();
  } catch {
    return false;
  }
}

async function runChecks() {
  const list = document.getElementById("checks");
  list.replaceChildren();
  let failed = 0;
  for (const [text, check] of checks) {
    const passed = await passes(check);
    failed += passed ? 0 : 1;
    const item = document.createElement("li");
    item.className = passed ? "passed" : "failed";
    item.textContent = passed ? text : `Not so: ${text}`;
    list.append(item);
  }
  document.documentElement.dataset.checks = String(checks.length);
  document.documentElement.dataset.failed = String(failed);
}

async function measure() {
  const times = [];
  for (let i = 0; i < 50; ++i) {
    const begin = performance.now();
    const response = await fetch("turbine.svg", { cache: "no-store" });
    await response.arrayBuffer();
    times.push(performance.now() - begin);
  }
  times.sort((a, b) => a - b);
  return times[times.length / 2];
}

const button = document.getElementById("ask");
button.disabled = false;
button.addEventListener("click", async () => {
  const answer = document.getElementById("answer");
  button.disabled = true;
  answer.value = "…";
  try {
    answer.value = `Half of the answers came within ${(await measure()).toFixed(2)} ms.`;
  } catch {
    answer.value = "The server does not answer.";
  }
  button.disabled = false;
});

runChecks();
