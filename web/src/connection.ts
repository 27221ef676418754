/** The way to the server: one session, HTTP requests, and one WebSocket that comes back by itself. */

import { signal } from "@preact/signals";
import type { Failure, Reply, ServerFrame } from "./protocol";

/** "asking": the person where Tarmac runs is asked whether this device may come in. */
export type LinkState = "asking" | "connecting" | "online" | "offline" | "locked";

const PROOF = "tarmac.proof";
const FOLDER = "tarmac.folder";
const LONGEST_PAUSE = 4000;
const REPLY_WITHIN = 30_000;
const QUIET = 10_000; // without a word from the server it is asked for one
const WORD_WITHIN = 15_000;
const AT_ONCE = 700; // a device that is not asked about is let in within this

export class ServerError extends Error {
  constructor(
    readonly what: string,
    readonly hint = "",
  ) {
    super(what);
  }
}

/** The connection ended before an answer came. What was asked may have been done. */
export class Away extends ServerError {}

export const link = signal<LinkState>("connecting");
/** Why this browser was not let in, as the server says it. */
export const refusal = signal<Failure | null>(null);

let proof = sessionStorage.getItem(PROOF) ?? "";
let socket: WebSocket | null = null;
let pause = 0;
let nextId = 1;
let heard = 0; // when the server said something
let asked = 0; // when it was last asked for a word, or the socket was opened
let retry: ReturnType<typeof setTimeout> | undefined;
const waiting = new Map<number, { resolve: (ok: Reply) => void; reject: (error: Error) => void }>();

interface Listener {
  frame(frame: ServerFrame): void;
  bytes(data: DataView): void;
}

let listener: Listener;

/** The folder that the address named for new tasks; empty: the server's own. */
export const folder = (): string => sessionStorage.getItem(FOLDER) ?? "";

/** Trade the address's one-time token for a proof, and connect. */
export async function connect(to: Listener): Promise<void> {
  listener = to;
  const address = location.hash;
  const given = new URLSearchParams(address.slice(1));
  const token = given.get("t");
  if (given.get("cwd")) sessionStorage.setItem(FOLDER, given.get("cwd") ?? "");
  if (token) {
    const here = /^(localhost|127\.[\d.]+|\[::1\])$/.test(location.hostname);
    const asking = here ? undefined : setTimeout(() => (link.value = "asking"), AT_ONCE);
    try {
      const reply = await fetch("/api/session", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ token }),
      });
      const said = (await reply.json()) as { proof?: string; error?: Failure };
      // Not before: who reloads meanwhile still has the token. And not the address of who went to a task meanwhile.
      if (location.hash === address) history.replaceState(null, "", location.pathname + "#/");
      refusal.value = said.error ?? null;
      if (reply.ok && said.proof) {
        proof = said.proof;
        sessionStorage.setItem(PROOF, proof);
      }
    } catch {
      // The server is away; an older proof may still do when it is back.
    }
    clearTimeout(asking);
    link.value = "connecting";
  }
  if (!proof) {
    link.value = "locked";
    return;
  }
  addEventListener("online", now);
  setInterval(listen, QUIET / 2);
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && now());
  open();
}

/** Try again at once, where a pause is under way. */
export function now(): void {
  if (socket || link.value === "locked") return;
  clearTimeout(retry);
  pause = 0;
  open();
}

/** A line may be dead, and nobody closes it: the server is asked for a word after a while, and given up without one. */
function listen(): void {
  if (!socket) return;
  const at = performance.now();
  if (asked > heard) {
    if (at - asked > WORD_WITHIN) lost(socket);
  } else if (at - heard > QUIET) {
    asked = at;
    call("ping").catch(() => {});
  }
}

function open(): void {
  if (socket) return;
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  const opened = new WebSocket(`${scheme}//${location.host}/api/socket`);
  opened.binaryType = "arraybuffer";
  socket = opened;
  asked = performance.now();
  opened.onopen = () => opened.send(JSON.stringify({ hello: proof }));
  opened.onmessage = (message: MessageEvent<string | ArrayBuffer>) => {
    heard = performance.now();
    if (typeof message.data !== "string") return listener.bytes(new DataView(message.data));
    const frame = JSON.parse(message.data) as ServerFrame;
    if (frame.type === "reply") return settle(frame.id, frame.ok, frame.error);
    if (frame.type === "welcome") pause = 0;
    listener.frame(frame);
    if (frame.type === "welcome") link.value = "online";
  };
  opened.onclose = (closed) => lost(opened, closed.code);
}

function lost(opened: WebSocket, code = 0): void {
  opened.onmessage = opened.onclose = null;
  opened.close();
  socket = null;
  for (const each of waiting.values()) each.reject(new Away("The server is away.", "It is tried again."));
  waiting.clear();
  if (code === 4401) {
    sessionStorage.removeItem(PROOF);
    link.value = "locked";
    return;
  }
  link.value = "offline";
  pause = Math.min(LONGEST_PAUSE, pause ? pause * 2 : 250);
  retry = setTimeout(open, pause);
}

function settle(id: number, ok: Reply | undefined, error: Failure | undefined): void {
  const asked = waiting.get(id);
  waiting.delete(id);
  if (error) asked?.reject(new ServerError(error.what, error.hint));
  else asked?.resolve(ok ?? {});
}

const isBeginning = (state: LinkState): boolean => state === "connecting" || state === "asking";

/** The first connection is under way: what is asked meanwhile waits for it. */
function settled(): Promise<void> {
  return new Promise((resolve) => {
    const stop = link.subscribe((state) => {
      if (isBeginning(state)) return;
      resolve();
      queueMicrotask(() => stop());
    });
  });
}

/** Ask the server to do something; its reply. */
export async function call(verb: string, fields: object = {}, within = REPLY_WITHIN): Promise<Reply> {
  if (isBeginning(link.value)) await settled();
  return new Promise((resolve, reject) => {
    if (socket?.readyState !== WebSocket.OPEN) {
      reject(new Away("The server is away.", "Nothing was sent. Try again when it is back."));
      return;
    }
    const id = nextId++;
    waiting.set(id, { resolve, reject });
    setTimeout(() => waiting.delete(id) && reject(new Away("The server did not answer in time.")), within);
    socket.send(JSON.stringify({ do: verb, id, ...fields }));
  });
}

/** Send what gets no reply. */
export function send(verb: string, fields: object): void {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ do: verb, ...fields }));
}

/** Send it; a refusal is told as a trouble of the server, and `away` is called if nobody knows whether it arrived. */
export function sendSurely(verb: string, fields: object, away: () => void): void {
  call(verb, fields).catch((error: unknown) => {
    if (error instanceof Away) away();
    else if (error instanceof ServerError) listener.frame({ type: "trouble", what: error.what, hint: error.hint });
  });
}

async function request(path: string, init: RequestInit = {}): Promise<Response> {
  if (isBeginning(link.value)) await settled();
  const headers = { Authorization: `Bearer ${proof}`, ...init.headers };
  const reply = await fetch(path, { ...init, headers });
  if (reply.ok) return reply;
  const said = (await reply.json().catch(() => ({}))) as { error?: Failure };
  if (reply.status === 401) link.value = "locked";
  throw new ServerError(said.error?.what ?? `The server answered ${reply.status}.`, said.error?.hint);
}

export async function get<T>(path: string): Promise<T> {
  return (await (await request(path)).json()) as T;
}

export async function post<T>(path: string, body: object): Promise<T> {
  const headers = { "Content-Type": "application/json" };
  return (await (await request(path, { method: "POST", headers, body: JSON.stringify(body) })).json()) as T;
}

export async function getBytes(path: string): Promise<{ data: Uint8Array; headers: Headers }> {
  const reply = await request(path);
  return { data: new Uint8Array(await reply.arrayBuffer()), headers: reply.headers };
}
