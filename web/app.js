// The page: starts a run, follows it, shows it. What a model or a tool says only ever becomes text.

import { follow, problemOf } from "./follow.js";
import { RunList } from "./runs.js";
import { Steering } from "./steer.js";
import { Timeline } from "./timeline.js";

const $ = (id) => document.getElementById(id);
let current = null; // the run on show: {id, links, timeline, stop}
const runs = new RunList({ section: $("runs"), list: $("run-list"), older: $("older") }, () => bearer(apiToken()));
const LISTED_AFTER = 1_000; // ms that a run needs, at most, to tell of its end
let key = newKey(); // of the start: pressing Start again after a lost answer makes no second run
const steering = new Steering(
  { form: $("steer"), text: $("message"), send: $("send"), trouble: $("steer-trouble"), endStep: $("end-step"), fallback: $("run-title") },
  (path, body) => command(`${current.path}${path}`, body),
  (problem) => show($("connection"), problem), newKey,
);

$("start").addEventListener("submit", (event) => { event.preventDefault(); start(); });
for (const id of ["task", "mode"]) $(id).addEventListener("input", () => { key = newKey(); });
$("task").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("start").requestSubmit();
});
$("cancel").addEventListener("click", cancel);
window.addEventListener("hashchange", showFromAddress);
document.addEventListener("visibilitychange", () => { if (!document.hidden) runs.refresh(); });
showFromAddress();
runs.refresh();

async function start() {
  const token = $("token").value.trim() || apiToken();
  show($("refused"), "");
  $("go").disabled = true;
  try {
    const answer = await fetch("/v1/runs", {
      method: "POST",
      headers: { "content-type": "application/json", "idempotency-key": key, ...bearer(token) },
      body: JSON.stringify({ input: $("task").value, ...($("mode").value && { mode: $("mode").value }) }),
    });
    if (!answer.ok) return refuse(await problemOf(answer));
    if (token) sessionStorage.setItem("token", token);
    $("token-row").hidden = true;
    const run = await answer.json();
    sessionStorage.setItem(`run:${run.run_id}`, run.stream_token);
    key = newKey();
    history.pushState(null, "", `#${run.run_id}`);
    open(run.run_id);
    $("run-title").scrollIntoView();
    runs.refresh();
  } catch {
    show($("refused"), "The server cannot be reached. Press Start to try again: no run is started twice.");
  } finally {
    $("go").disabled = false;
  }
}

function refuse(problem) {
  show($("refused"), problem.code === "token_required" ? "The server asks for a token." : problem.detail);
  if (problem.status !== 401) return;
  sessionStorage.removeItem("token");
  $("token").value = "";
  $("token-row").hidden = false;
  $("token").focus();
}

function showFromAddress() {
  const id = location.hash.slice(1);
  if (/^[a-zA-Z0-9_-]{1,168}$/.test(id) && id !== current?.id) open(id);
}

function open(id) {
  current?.stop();
  const path = `/v1/runs/${id}`;
  const timeline = new Timeline({
    list: $("timeline"), log: $("log"), status: $("status"), about: $("about"), usage: $("usage"),
    answer: (question, text) => command(`${path}/answers/${encodeURIComponent(question)}`, { answer: text }),
    decide: (call, body) => command(`${path}/approvals/${encodeURIComponent(call)}`, body),
    stop: (call) => command(`${path}/subagents/${encodeURIComponent(call)}/cancel`, {}),
    whole: (call) => read(`${path}/approvals/${encodeURIComponent(call)}`),
    changed: () => {
      if (timeline.ended && !$("cancel").hidden) setTimeout(() => runs.refresh(), LISTED_AFTER);
      $("cancel").hidden = timeline.ended;
      steering.show({ working: !timeline.ended, step: timeline.step });
    },
  });
  const links = { events: `${path}/events`, ws: `${path}/ws` };
  const run = { id, path, links, runToken: () => runToken(id), token: () => runToken(id) ?? apiToken() };
  current = { ...run, timeline, stop: () => {} };
  $("run").hidden = false;
  runs.mark(id);
  $("cancel").disabled = false;
  $("cancel").hidden = true;
  steering.reset();
  show($("connection"), "");
  current.stop = follow(run, {
    event: (event) => timeline.take(event),
    connection: (text) => show($("connection"), text),
    refused: (problem) => timeline.lost(problem.detail),
  });
}

async function cancel() {
  $("cancel").disabled = true;
  const problem = await command(`${current.path}/cancel`, {});
  if (problem) {
    $("cancel").disabled = false;
    show($("connection"), problem);
  }
}

/** Sends a command to the run on show; what it was refused with, or "". */
async function command(path, body) {
  const headers = { "content-type": "application/json", ...bearer(current.token()) };
  try {
    const answer = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
    return answer.ok ? "" : (await problemOf(answer)).detail;
  } catch {
    return "The server cannot be reached. Try again.";
  }
}

/** What the run on show answers to a question, or null. */
async function read(path) {
  try {
    const answer = await fetch(path, { headers: bearer(current.token()) });
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}

function runToken(id) {
  return sessionStorage.getItem(`run:${id}`);
}

/** Kept until this tab is closed. */
function apiToken() {
  return sessionStorage.getItem("token");
}

function bearer(token) {
  return token ? { authorization: `Bearer ${token}` } : {};
}

function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function show(element, text) {
  element.textContent = text;
  element.hidden = !text;
}
