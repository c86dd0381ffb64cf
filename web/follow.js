// Follows a run: WebSocket, or server-sent events where that does not come through. Every record comes once, in order.

const FIRST_DELAY = 500, LAST_DELAY = 15_000;
const TERMINAL = new Set(["run.completed", "run.failed", "run.cancelled"]);

/**
 * @param {{links: {events: string, ws: string}, token: () => string|null, runToken: () => string|null}} run
 *   `token` opens the stream; the socket takes none but the token of the run
 * @param {{event(e: object): void, connection(text: string): void, refused(problem: object): void}} tell
 * @returns {() => void} stops following; the run goes on
 */
export function follow(run, tell) {
  const stop = new AbortController();
  const cursor = { seq: 0, ended: false };
  keepFollowing(run, tell, cursor, stop.signal);
  return () => stop.abort();
}

async function keepFollowing(run, tell, cursor, signal) {
  let failures = 0, overSocket = mayUseSocket(run);
  while (!signal.aborted && !cursor.ended) {
    const take = (event) => { failures = 0; if (isNew(event, cursor)) tell.event(event); };
    const connected = () => { failures = 0; tell.connection(""); };
    const way = overSocket ? bySocket : byStream;
    const outcome = await way(run, cursor, take, connected, signal);
    if (signal.aborted || cursor.ended) break;
    if (outcome.problem) return tell.refused(outcome.problem);
    if (!outcome.opened) overSocket = !overSocket && mayUseSocket(run);
    const delay = outcome.retry ?? Math.min(LAST_DELAY, FIRST_DELAY * 2 ** failures++) * (0.75 + Math.random() / 2);
    if (!outcome.retry) tell.connection(`Not connected. Trying again in ${Math.max(1, Math.round(delay / 1000))} s; the run goes on meanwhile.`);
    await pause(delay, signal);
  }
  tell.connection("");
}

function mayUseSocket(run) {
  return run.runToken() !== null || run.token() === null;
}

function isNew(event, cursor) {
  if (event.seq === undefined) return true;
  if (event.seq <= cursor.seq) return false;
  cursor.seq = event.seq;
  if (TERMINAL.has(event.type)) cursor.ended = true;
  return true;
}

function bySocket(run, cursor, take, connected, signal) {
  const url = new URL(`${run.links.ws}?after=${cursor.seq}`, location.href);
  url.protocol = url.protocol.replace("http", "ws");
  const token = run.runToken();
  return new Promise((resolve) => {
    const socket = new WebSocket(url, token ? ["edge-agent.v1", `token.${token}`] : ["edge-agent.v1"]);
    let opened = false;
    signal.addEventListener("abort", () => socket.close(1000), { once: true });
    socket.onopen = () => { opened = true; connected(); };
    socket.onmessage = ({ data }) => {
      for (const event of [JSON.parse(data)].flat()) if (event.type) take(event);
    };
    socket.onclose = () => resolve({ opened });
  });
}

async function byStream(run, cursor, take, connected, signal) {
  let opened = false;
  const outcome = { get opened() { return opened; }, retry: undefined };
  try {
    const token = run.token();
    const headers = { accept: "text/event-stream", ...(token && { authorization: `Bearer ${token}` }) };
    const answer = await fetch(`${run.links.events}?after=${cursor.seq}`, { headers, signal, cache: "no-store" });
    if (!answer.ok) return answer.status < 500 && answer.status !== 429 ? { opened, problem: await problemOf(answer) } : outcome;
    opened = true;
    connected();
    await readFrames(answer.body, (frame) => {
      if (frame.retry) outcome.retry = frame.retry;
      if (frame.data) take(JSON.parse(frame.data));
    });
  } catch { /* the connection broke: come back with the cursor */ }
  return outcome;
}

async function readFrames(body, take) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    const frames = (rest + read.value).split(/\r?\n\r?\n/);
    rest = frames.pop();
    for (const frame of frames) take(parseFrame(frame));
  }
}

function parseFrame(text) {
  const data = [];
  let retry;
  for (const line of text.split(/\r?\n/)) {
    if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
    if (line.startsWith("retry:")) retry = Number(line.slice(6)) || undefined;
  }
  return { data: data.join("\n"), retry };
}

/** What a refusal says, whatever came. */
export async function problemOf(answer) {
  try {
    return await answer.json();
  } catch {
    return { status: answer.status, code: "unknown", detail: `The server answered ${answer.status}.` };
  }
}

function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}
