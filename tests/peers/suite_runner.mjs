// Run a test file of another agent, with Tarmac's edit tools in the place of that agent's.
//
//   node suite_runner.mjs VITE ADAPTER FILE
//
// The test file runs unchanged. What it imports is replaced: the test framework by the small one below, the code
// under test by the adapter, everything else by `told`, which agrees to anything. Each call of a tool is one JSON line on
// stdout, with its answer on stdin. At the end there is one line for each test. What a test says about words and
// messages is not compared, only the files and whether an edit is refused.
import fs from "node:fs"
import os from "node:os"
import path from "node:path"
import { createRequire } from "node:module"
import { pathToFileURL } from "node:url"

const [, , vite, adapterName, file] = process.argv
const { transformWithOxc, moduleRunnerTransform } = await import(pathToFileURL(createRequire(`${vite}/`).resolve("vite")))
const require = createRequire(import.meta.url)

// ---- the other side

const say = (message) => fs.writeSync(1, JSON.stringify(message) + "\n")
const input = fs.openSync("/dev/stdin", "r") // opened anew, as Node's own does not block
let buffered = ""
function answer() {
  const piece = Buffer.alloc(65536)
  while (!buffered.includes("\n")) {
    const size = fs.readSync(input, piece, 0, piece.length, null)
    if (!size) throw new Error("the driver is gone")
    buffered += piece.toString("latin1", 0, size)
  }
  const end = buffered.indexOf("\n")
  const line = Buffer.from(buffered.slice(0, end), "latin1").toString("utf8")
  buffered = buffered.slice(end + 1)
  return JSON.parse(line)
}

class Refused extends Error {
  constructor(text) {
    super(text)
    Object.defineProperty(this, "message", { value: refusal })
    this.why = text
  }
}

let folder = "" // of the test that runs
function tool(name, args, cwd = folder) {
  say({ call: name, arguments: args, cwd })
  const { refused, text } = answer()
  if (refused !== undefined) throw new Refused(refused)
  return text
}

/** What the tool makes of a file with this content; null for one that is not there. */
function edited(content, call, name = "file.txt") {
  const place = path.join(fs.mkdtempSync(path.join(folder, "one-")), name)
  if (content !== null) fs.writeFileSync(place, content)
  const text = call(place)
  return { text, content: fs.readFileSync(place, "utf8") }
}

// ---- agrees to anything

const anything = (kind) =>
  new Proxy(function () {}, {
    get: (_, key) => {
      if (key === "kind") return kind
      if (key === "then" || key === "asymmetricMatch") return undefined
      if (key === Symbol.toPrimitive) return () => kind
      if (key === Symbol.iterator) return function* () { return anything(kind) } // prettier-ignore
      return anything(kind)
    },
    apply: () => anything(kind),
    construct: () => anything(kind),
  })
const isTold = (value) => typeof value === "function" && (value.kind === "told" || value.kind === "refusal")
const told = anything("told")
const refusal = anything("refusal")

// ---- the test framework

let checks = 0
const same = (one, two) => {
  if (isTold(one)) return true
  if (two?.asymmetricMatch) return two.asymmetricMatch(one)
  if (Array.isArray(one) && one.lines) two = two.filter((each) => each.type !== "old")
  if (one === null || two === null || typeof one !== "object" || typeof two !== "object") return Object.is(one, two)
  const keys = Object.keys(two)
  return Object.keys(one).filter((key) => key !== "lines").length === keys.length && keys.every((key) => same(one[key], two[key]))
}
const contains = (one, two) => (two instanceof RegExp ? two.test(one) : one.includes(two))
const matchers = {
  toBe: same,
  toEqual: same,
  toStrictEqual: same,
  toBeNull: (one) => one === null,
  toBeUndefined: (one) => one === undefined,
  toBeDefined: (one) => one !== undefined,
  toContain: contains,
  toMatch: contains,
  toHaveLength: (one, size) => one.length === size,
  toBeGreaterThan: (one, two) => one > two,
  toBeInstanceOf: (one, two) => one instanceof two,
  toBeTruthy: (one) => !!one,
  toThrow: (one) => throws(one),
  toThrowError: (one) => throws(one),
}
function throws(action) {
  if (typeof action !== "function") return action instanceof Error
  try {
    action()
  } catch (error) {
    if (error instanceof Refused) return true
    throw error
  }
  return false
}

function expect(value) {
  const check = (name, invert, actual, given) => {
    if (isTold(actual)) {
      if (actual.kind === "refusal") checks += 1
      return
    }
    checks += 1
    if (!matchers[name]) throw new Error(`no matcher ${name}`)
    if (!!matchers[name](actual, ...given) === invert)
      throw new Error(`${JSON.stringify(actual)} ${invert ? "not " : ""}${name} ${JSON.stringify(given[0])}`)
  }
  const made = (invert) =>
    new Proxy({}, {
      get: (_, name) => {
        if (name === "not") return made(!invert)
        if (name === "resolves") return later((promise) => promise, invert)
        if (name === "rejects") return later((promise) => Promise.resolve(promise).then(() => undefined, (error) => error), invert)
        return (...given) => check(name, invert, value, given)
      },
    })
  const later = (settled, invert) =>
    new Proxy({}, { get: (_, name) => async (...given) => check(name, invert, await settled(typeof value === "function" ? value() : value), given) })
  return made(false)
}
expect.objectContaining = expect.stringContaining = expect.any = expect.anything = () => told

const tests = []
let names = []
let before = []
let after = []
function describe(name, body) {
  const outer = [names, before, after]
  names = [...names, name]
  before = [...before]
  after = [...after]
  body()
  ;[names, before, after] = outer
}
describe.skip = () => {}
const it = (name, body) => tests.push({ name: [...names, name].join(" > "), body, before: [...before], after: [...after] })
it.each = (rows) => (name, body) => {
  for (const row of rows) it(name.replace(/\$(\w+)/g, (_, key) => String(row[key])).replace("%s", String(row)), () => body(row))
}
it.skip = () => {}
it.instance = it.live = it.effect = (name, body) => it(name, () => run(body()))
const mocked = () => anything("told")
const framework = {
  describe, it, test: it, expect,
  beforeEach: (body) => void before.push(body),
  afterEach: (body) => void after.push(body),
  beforeAll: (body) => void before.push(body),
  afterAll: () => {},
  vi: new Proxy({}, { get: (_, name) => (name === "hoisted" ? (body) => body() : mocked) }),
} // prettier-ignore
Object.assign(globalThis, framework)

// ---- a little of Effect, for opencode

class Eff {
  constructor(action) { this.action = action } // prettier-ignore
  *[Symbol.iterator]() { return yield this } // prettier-ignore
  pipe(...steps) { return steps.reduce((value, step) => step(value), this) } // prettier-ignore
}
const run = async (effect) => (effect instanceof Eff ? await effect.action() : effect)
const gen = (body) =>
  new Eff(async () => {
    const steps = body()
    let step = steps.next()
    while (!step.done) {
      try {
        step = steps.next(await run(step.value))
      } catch (error) {
        step = steps.throw(error)
      }
    }
    return step.value
  })
const Effect = {
  gen, void: new Eff(async () => {}),
  fn: () => (body) => (...args) => gen(() => body(...args)),
  promise: (action) => new Eff(action), sync: (action) => new Eff(async () => action()),
  exit: (effect) => new Eff(() => run(effect).then((value) => ({ value }), (cause) => ({ cause }))),
} // prettier-ignore
const effects = {
  Effect: new Proxy(Effect, { get: (_, name) => Effect[name] ?? told }),
  Exit: { isFailure: (exit) => "cause" in exit },
  Cause: { squash: (cause) => cause, pretty: (cause) => (cause instanceof Refused ? refusal : String(cause)) },
  Layer: told, Deferred: told, Fiber: told,
} // prettier-ignore
const effectTool = (act) =>
  new Eff(async () => ({
    init: () =>
      new Eff(async () => ({
        execute: (args, ctx) =>
          new Eff(async () => {
            await run(ctx?.ask?.(told))
            act(args)
            return told
          }),
      })),
  }))
const disk = {
  writeWithDirs: (place, content) => new Eff(async () => (fs.mkdirSync(path.dirname(place), { recursive: true }), fs.writeFileSync(place, content))),
  readFileString: (place) => new Eff(async () => fs.readFileSync(place, "utf8")),
  makeDirectory: (place) => new Eff(async () => void fs.mkdirSync(place, { recursive: true })),
}

// ---- the adapters: what stands for the code under test, by the end of its module's name

const replace = (content, given, name) => edited(content, (place) => tool("search_and_replace", { path: place, ...given }), name)
const one = (content, old, next, every) => replace(content, { old_string: old, new_string: next, replace_all: !!every }).content

class EditTool {
  build(params) {
    return {
      execute: async () => {
        try {
          tool("search_and_replace", { ...params, ai_proposed_content: undefined })
        } catch (error) {
          if (!(error instanceof Refused)) throw error
          return { llmContent: refusal, returnDisplay: refusal, error: { type: refusal, message: refusal } }
        }
        return { llmContent: told, returnDisplay: told, display: told }
      },
    }
  }
  validateToolParams(params) {
    try {
      edited(params.old_string, (place) => tool("search_and_replace", { ...params, file_path: place }), path.basename(params.file_path))
    } catch (error) {
      if (error instanceof Refused) return refusal
      throw error
    }
    return null
  }
}

const adapters = {
  gemini: {
    "/edit.js": {
      EditTool,
      applyReplacement: (content, old, next, isNew) => {
        try {
          return isNew ? edited(content, (place) => tool("write_to_file", { path: place, content: next })).content : one(content, old, next, true)
        } catch (error) {
          if (error instanceof Refused) return content ?? ""
          throw error
        }
      },
      calculateReplacement: async (_, { params, currentContent }) => {
        const { old_string, new_string, allow_multiple } = params
        try {
          const made = replace(currentContent, { old_string, new_string, allow_multiple }, params.file_path)
          return { newContent: made.content, occurrences: Number(/Changed in (\d+) place/.exec(made.text)?.[1]), strategy: told }
        } catch (error) {
          if (error instanceof Refused) return { newContent: currentContent, occurrences: 0, strategy: told }
          throw error
        }
      },
    },
  },
  continue: {
    "/performReplace": {
      executeFindAndReplace: one,
      executeMultiFindAndReplace: (content, edits) => edits.reduce((text, each) => one(text, each.old_string, each.new_string, each.replace_all), content),
    },
    "/unifiedDiffApply": {
      isUnifiedDiffFormat: () => told,
      applyUnifiedDiff: (content, diff) => {
        const made = edited(content, (place) => tool("apply_diff", { path: place, diff })).content
        return Object.assign(made.split("\n").map((line) => ({ type: told, line })), { lines: true })
      },
    },
  },
  cline: {
    "/apply-patch": { createApplyPatchExecutor: () => async ({ input }, cwd) => (tool("apply_patch", { patch: input }, cwd), told) },
    "/editor": {
      createEditorExecutor: () => async ({ path: place, old_text, new_text, insert_line }, cwd) => {
        if (insert_line !== undefined) tool("insert_content", { path: place, line: insert_line, content: new_text }, cwd)
        else tool("search_and_replace", { path: place, old_text: old_text ?? "", new_text }, cwd)
        return told
      },
    },
  },
  opencode: {
    effect: effects,
    "/edit": { EditTool: effectTool((args) => tool("search_and_replace", args)) },
    "/apply_patch": { ApplyPatchTool: effectTool(({ patchText }) => tool("apply_patch", { patch: patchText })) },
    "/effect": { testEffect: () => it },
    "/fixture": { TestInstance: new Eff(async () => ({ directory: folder })), disposeAllInstances: async () => {} },
    "/fs-util": { FSUtil: { Service: new Eff(async () => disk), node: told } },
  },
}

// ---- run it

function imported(name) {
  if (["vitest", "bun:test"].includes(name)) return framework
  for (const [end, module] of Object.entries(adapters[adapterName])) if (name === end || (end[0] === "/" && name.endsWith(end))) return module
  try {
    if (!name.startsWith(".")) return Object.assign({ default: require(name) }, require(name))
  } catch {
    // a package that is not here
  }
  return anything("told")
}

const plain = (await transformWithOxc(fs.readFileSync(file, "utf8"), file, { lang: "ts", target: "es2022" })).code
const { code } = await moduleRunnerTransform(plain, null, file, plain)
const AsyncFunction = (async () => {}).constructor
const exported = {}
await new AsyncFunction("__vite_ssr_import__", "__vite_ssr_exports__", "__vite_ssr_exportName__", "__vite_ssr_exportAll__", "__vite_ssr_import_meta__", code)(
  async (name) => imported(name), exported, () => {}, () => {}, {},
) // prettier-ignore

for (const test of tests) {
  folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "suite-")))
  checks = 0
  let why = ""
  try {
    for (const step of test.before) await step()
    await test.body()
  } catch (error) {
    why = error.why ?? String(error.message?.kind ?? error.message ?? error)
  }
  for (const step of test.after) await Promise.resolve().then(step).catch(() => {})
  fs.rmSync(folder, { recursive: true, force: true })
  say({ test: test.name, checks, why })
}
process.exit(0)
