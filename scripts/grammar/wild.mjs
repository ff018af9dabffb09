// Collects JSON Schemas from folders of unpacked packages and makes instances of
// them, to score the grammar compiler on schemas of the wild. scripts/grammar/wild
// runs it in a folder with the modules that it needs:
//
//	node wild.mjs FOLDER... > wild.jsonl
//
// Each line is {"id", "schema", "tests": [{"data", "valid"}]}. Instances are made
// by json-schema-faker; near misses are instances with one change. What is valid
// is ajv's judgement. Schemas above the compiler's own limits, ones that ajv
// refuses, ones without a valid instance and ones of which these take too long
// are left out; of one folder at most
// LIMIT schemas are taken. The options of the rules of ESLint plugins that are
// installed here are schemas too. All choices come from a fixed seed.
import { createRequire } from 'node:module'
import fs from 'node:fs'
import path from 'node:path'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'

const require = createRequire(path.join(process.cwd(), 'package.json'))
const addFormats = require('ajv-formats')
const { generateSync } = await import(path.join(process.cwd(), 'node_modules/json-schema-faker/dist/index.js'))
const LIMIT = 150
const TESTS = 8 // instances and near misses of a schema

// random is a small generator with a seed, so that runs can be compared.
function random(seed) {
  let s = seed >>> 0
  return () => {
    s = (s + 0x6d2b79f5) >>> 0
    let t = Math.imul(s ^ (s >>> 15), s | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

const isObject = v => v !== null && typeof v === 'object' && !Array.isArray(v)

function looksLikeSchema(v) {
  if (!isObject(v)) return false
  if (/json-schema\.org\/draft/.test(v.$schema ?? '')) return true
  return isObject(v.properties) && (v.type === 'object' || Array.isArray(v.required) || isObject(v.definitions))
}

function* files(folder) {
  for (const entry of fs.readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const name = path.join(folder, entry.name)
    if (entry.isDirectory()) yield* files(name)
    else if (/\.json$/.test(entry.name)) yield name
  }
}

const parsed = new Map()

function parse(file) {
  if (!parsed.has(file)) parsed.set(file, JSON.parse(fs.readFileSync(file)))
  return parsed.get(file)
}

// bundle takes definitions that stand in files beside a schema into it.
function bundle(schema, file) {
  const taken = {}
  const rewrite = (v, at) => {
    if (Array.isArray(v)) return v.map(x => rewrite(x, at))
    if (!isObject(v)) return v
    const out = {}
    for (const [key, value] of Object.entries(v)) out[key] = rewrite(value, at)
    const [, beside, shelf, name] = /^(?:.*\/)?([\w.-]+\.json)?#\/(definitions|\$defs)\/([^/]+)$/.exec(v.$ref ?? '') ?? []
    if (name && (beside || at !== file)) {
      out.$ref = '#/definitions/' + name
      if (!(name in taken)) {
        const source = beside ? path.join(path.dirname(at), beside) : at
        taken[name] = true // for definitions that come to themselves
        taken[name] = rewrite(parse(source)[shelf][name], source)
      }
    }
    return out
  }
  const out = rewrite(schema, file)
  return Object.keys(taken).length ? { ...out, definitions: { ...out.definitions, ...taken } } : out
}

function depth(v) {
  if (v === null || typeof v !== 'object') return 0
  let most = 0
  for (const x of Object.values(v)) most = Math.max(most, depth(x))
  return most + 1
}

// sampled is a folder's schemas, evenly spread if there are many.
function sampled(folder, seen) {
  const found = []
  for (const file of files(folder)) {
    if (fs.statSync(file).size > 1 << 20) continue
    let schema
    try {
      schema = JSON.parse(fs.readFileSync(file))
      if (!looksLikeSchema(schema)) continue
      schema = bundle(schema, file)
    } catch {
      continue
    }
    const text = JSON.stringify(schema)
    const key = text.replace(/"(description|title|\$id|id)":"(?:[^"\\]|\\.)*",?/g, '')
    if (text.length > 65536 || depth(schema) > 32 || seen.has(key)) continue
    seen.add(key)
    found.push({ id: path.relative(path.dirname(folder), file), schema })
  }
  const step = Math.max(1, found.length / LIMIT)
  return found.filter((_, i) => Math.floor(i / step) !== Math.floor((i - 1) / step))
}

// rules are the schemas of the options of ESLint's rules, as ESLint reads them.
function* rules() {
  const sources = { eslint: () => require('eslint/use-at-your-own-risk').builtinRules }
  for (const plugin of ['@typescript-eslint/eslint-plugin', 'eslint-plugin-unicorn'])
    sources[plugin] = () => Object.entries((require(plugin).default ?? require(plugin)).rules)
  for (const [source, load] of Object.entries(sources)) {
    let all
    try {
      all = load()
    } catch {
      continue
    }
    for (const [name, rule] of all) {
      const s = rule.meta?.schema
      if (Array.isArray(s) && s.length) yield { id: `${source}/${name}`, schema: { type: 'array', items: s, minItems: 0, maxItems: s.length, $schema: 'http://json-schema.org/draft-07/schema#' } }
      else if (isObject(s)) yield { id: `${source}/${name}`, schema: { $schema: 'http://json-schema.org/draft-07/schema#', ...s } }
    }
  }
}

function validatorOf(schema) {
  const draft = /draft-0[34]/.test(schema.$schema ?? '') ? 'ajv-draft-04' : /2020-12/.test(schema.$schema ?? '') ? 'ajv/dist/2020' : /2019-09/.test(schema.$schema ?? '') ? 'ajv/dist/2019' : 'ajv'
  const Ajv = require(draft).default ?? require(draft)
  const ajv = new Ajv({ strict: false, logger: false, validateSchema: false, unicodeRegExp: true })
  addFormats(ajv)
  const plain = { ...schema }
  if (!/json-schema\.org\/draft/.test(plain.$schema ?? '')) delete plain.$schema // ajv refuses dialects that it does not know
  return ajv.compile(plain)
}

// places lists every value inside v with the way to it.
function places(v, way = []) {
  const out = [way]
  if (v !== null && typeof v === 'object') for (const key of Object.keys(v)) out.push(...places(v[key], [...way, key]))
  return out
}

const others = [null, true, 0, -1, 2.5, 1e6, '', 'x', 'no-such value', [], {}, [1, 1], { x: 1 }]

// changed is the value with one change somewhere.
function changed(v, rand) {
  const pick = list => list[Math.floor(rand() * list.length)]
  const copy = structuredClone(v)
  const way = pick(places(copy))
  if (!way.length) return pick(others)
  const holder = way.slice(0, -1).reduce((x, key) => x[key], copy)
  const key = way.at(-1)
  const value = holder[key]
  switch (Math.floor(rand() * 5)) {
    case 0:
      if (Array.isArray(holder)) holder.splice(key, 1)
      else delete holder[key]
      break
    case 1:
      if (typeof value === 'string') holder[key] = value + pick(['x', ' ', '!', 'ä'])
      else if (typeof value === 'number') holder[key] = value + pick([1, -1, 0.5, 1000, -1000])
      else if (Array.isArray(value) && value.length) value.push(structuredClone(value[0]))
      else holder[key] = pick(others)
      break
    case 2:
      if (isObject(holder)) holder['extra' + Math.floor(rand() * 9)] = pick(others)
      else holder.push(pick(others))
      break
    default:
      holder[key] = pick(others)
  }
  return copy
}

// instances are what json-schema-faker makes, with few optional members, then
// with many.
function instances(schema, seed) {
  const out = []
  for (let i = 0; i < TESTS; i++) {
    const options = { seed: seed + i, optionalsProbability: [0, 0.3, 0.6, 1][i % 4], maxItems: 4, maxLength: 60, failOnInvalidTypes: false, failOnInvalidFormat: false, fillProperties: false }
    try {
      out.push(generateSync(structuredClone(schema), options))
    } catch {}
  }
  return out
}

function testsOf(schema, seed) {
  const valid = validatorOf(schema)
  const rand = random(seed)
  const made = instances(schema, seed)
  const near = made.length ? Array.from({ length: 3 * TESTS }, (_, i) => changed(made[i % made.length], rand)) : []
  const tests = new Map()
  for (const data of [...made, ...near]) {
    if (data === undefined) continue
    const text = JSON.stringify(data)
    if (text.length < 65536) tests.set(text, { data: JSON.parse(text), valid: valid(JSON.parse(text)) })
  }
  return [...tests.values()]
}

// A worker makes the tests of one schema after the other. It is ended where it
// takes too long: some recursive schemas have no end.
const PATIENCE = 5000 // milliseconds

function startWorker() {
  const worker = new Worker(new URL(import.meta.url), { resourceLimits: { maxOldGenerationSizeMb: 1000 } })
  worker.on('message', answer => worker.onAnswer(answer))
  worker.on('error', reason => worker.onFailure(reason))
  return worker
}

function ask(worker, question) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(reject, PATIENCE, new Error('takes too long'))
    worker.onAnswer = answer => {
      clearTimeout(timer)
      resolve(answer)
    }
    worker.onFailure = reason => {
      clearTimeout(timer)
      reject(reason)
    }
    worker.postMessage(question)
  })
}

async function main(folders) {
  const seen = new Set()
  const counts = { written: 0, invalid: 0, without: 0, slow: 0 }
  let worker = startWorker()
  for (const [i, { id, schema }] of [...folders.flatMap(folder => sampled(folder, seen)), ...rules()].entries()) {
    let tests
    try {
      tests = await ask(worker, { schema: JSON.stringify(schema), seed: i + 1 })
    } catch {
      await worker.terminate()
      worker = startWorker()
      counts.slow++
      continue
    }
    if (!tests) counts.invalid++
    else if (!tests.some(t => t.valid)) counts.without++
    else {
      counts.written++
      process.stdout.write(JSON.stringify({ id, schema, tests }) + '\n')
    }
  }
  await worker.terminate()
  console.error(`${counts.written} schemas; left out: ${counts.invalid} that ajv refuses, ${counts.without} without a valid instance, ${counts.slow} of which instances take too long`)
}

if (isMainThread) await main(process.argv.slice(2))
else
  parentPort.on('message', ({ schema, seed }) => {
    let tests = null
    try {
      tests = testsOf(JSON.parse(schema), seed)
    } catch {}
    parentPort.postMessage(tests)
  })
