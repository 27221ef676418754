/** Every setting with its default and where its value comes from; what was allowed for good; MCP servers. */

import { useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect } from "preact/hooks";
import { get, post, ServerError } from "./connection";
import type { Grant, Setting } from "./protocol";
import { tell, welcome } from "./store";
import { theme, THEMES } from "./theme";

interface McpServer {
  name: string;
  state: string;
  origin: string;
  shown: string;
  tools: string[];
  error: string;
}

const failed = (error: unknown): void => {
  if (error instanceof ServerError) tell(error.what, error.hint);
  else throw error;
};

const written = (value: unknown): string => (value === null || value === undefined || value === "" ? "not set" : typeof value === "string" ? value : JSON.stringify(value));

export function Settings(): VNode {
  const values = useSignal<Record<string, Setting> | null>(null);
  const notes = useSignal<string[]>([]);
  const grants = useSignal<Grant[] | null>(null);
  const servers = useSignal<McpServer[]>([]);
  const search = useSignal("");
  const changedOnly = useSignal(false);
  useEffect(() => {
    get<{ values: Record<string, Setting>; notes: string[] }>("/api/settings")
      .then((reply) => {
        values.value = reply.values;
        notes.value = reply.notes;
      })
      .catch(failed);
    get<{ grants: Grant[] }>("/api/grants")
      .then((reply) => (grants.value = reply.grants))
      .catch(failed);
    get<{ servers: McpServer[] }>("/api/mcp")
      .then((reply) => (servers.value = reply.servers))
      .catch((error: unknown) => {
        if (!(error instanceof ServerError)) throw error; // this server has none to tell of
      });
  }, []);
  const revoke = (grant: Grant): void => {
    post("/api/grants/revoke", { id: grant.id })
      .then(() => (grants.value = (grants.value ?? []).filter((each) => each.id !== grant.id)))
      .catch(failed);
  };
  const text = search.value.trim().toLowerCase();
  const shown = Object.entries(values.value ?? {}).filter(
    ([name, setting]) =>
      (!text || `${name} ${setting.about}`.toLowerCase().includes(text)) && (!changedOnly.value || written(setting.value) !== written(setting.default)),
  );
  return (
    <main class="page" tabIndex={-1} aria-label="Settings">
      <header class="page-head">
        <h1>Settings</h1>
        <span class="grow" />
        <div class="segments" role="group" aria-label="Colours">
          {THEMES.map((each) => (
            <button key={each} type="button" aria-pressed={theme.value === each} onClick={() => (theme.value = each)}>
              {each[0]!.toUpperCase() + each.slice(1)}
            </button>
          ))}
        </div>
      </header>
      <p class="faint">
        Tarmac {welcome.value?.version} in <code class="path">{welcome.value?.workspace}</code>. Settings are changed in files and variables; <code>tarmac config</code> edits them.
      </p>
      {notes.value.map((note) => (
        <p class="notice bad" key={note}>
          {note}
        </p>
      ))}

      <h2>Allowed for good</h2>
      {grants.value?.length ? (
        <ul class="grants">
          {grants.value.map((grant) => (
            <li key={grant.id}>
              <code>{grant.kind === "prefix" ? `${grant.text} …` : grant.text}</code>
              <span class="faint">
                {grant.scope}
                {grant.where ? `: ${grant.where}` : ""} · {grant.risk} risk
              </span>
              <button type="button" aria-label={`Take back: ${grant.text}`} onClick={() => revoke(grant)}>
                Take back
              </button>
            </li>
          ))}
        </ul>
      ) : (
        <p class="faint">Nothing is allowed for good. “Always” in a question adds to this list.</p>
      )}

      <h2>MCP servers</h2>
      {servers.value.length ? (
        <ul class="grants">
          {servers.value.map((server) => (
            <li key={server.name}>
              <strong>{server.name}</strong>
              <code>{server.shown}</code>
              <span class={server.error ? "bad" : "faint"}>
                {server.error || `${server.state}${server.tools.length ? ` · ${server.tools.length} tools` : ""}`}
              </span>
            </li>
          ))}
        </ul>
      ) : (
        <p class="faint">No server is configured.</p>
      )}

      <h2 id="values">Values</h2>
      <div class="filter">
        <input type="search" aria-label="Search settings" placeholder="Search settings" value={search.value} onInput={(event) => (search.value = event.currentTarget.value)} />
        <label>
          <input type="checkbox" checked={changedOnly.value} onChange={(event) => (changedOnly.value = event.currentTarget.checked)} /> only what differs from its default
        </label>
      </div>
      <div class="table" tabIndex={0} role="region" aria-labelledby="values">
        <table class="settings">
          <thead>
            <tr>
              <th>Setting</th>
              <th>Value</th>
              <th>Default</th>
              <th>Comes from</th>
            </tr>
          </thead>
          <tbody>
            {shown.map(([name, setting]) => {
              const own = written(setting.value) !== written(setting.default);
              return (
                <tr key={name}>
                  <td>
                    <code>{name}</code>
                    <p class="faint">{setting.about}</p>
                  </td>
                  <td class={own ? "mono own" : "mono"}>{written(setting.value)}</td>
                  <td class="mono faint">{written(setting.default)}</td>
                  <td class="faint">
                    {setting.origin.place}
                    {setting.origin.where ? <span class="mono where">{`${setting.origin.where}${setting.origin.line ? `:${setting.origin.line}` : ""}`}</span> : null}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </main>
  );
}
