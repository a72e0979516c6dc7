// How Node finds and reads the modules of suites: TypeScript files under the names that imports give to their
// JavaScript, `@jest/globals`, and modules that a suite replaced.
//
// The URLs of modules that belong to one suite, or to the suites of one interpreter, have the name of their graph
// (`?graph=INTERPRETER-SUITE`). What they import from the project belongs to the same graph.

import { existsSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { receiveMessageOnPort } from 'node:worker_threads';
import { compiledText } from './compiled.mjs';

const SUITE_GLOBALS = new URL('suite-globals.mjs', import.meta.url).href;
const FIXTURE_GLOBALS = new URL('fixture-globals.mjs', import.meta.url).href;
/** Where `run-separate.mjs` installed the packages of later SDKs. */
const { TURNPIKE_SDKS } = process.env;
const SEPARATE =
  TURNPIKE_SDKS === undefined
    ? {}
    : {
        ai: pathToFileURL(`${TURNPIKE_SDKS}/node_modules/ai7/dist/index.js`).href,
        'ai/test': pathToFileURL(`${TURNPIKE_SDKS}/node_modules/ai7/dist/test/index.js`).href,
      };
const XSTATE = new URL('../fixtures/xstate-by-default.ts', import.meta.url).href;

/** @type {import('node:worker_threads').MessagePort} */
let replacements;
/** The texts of replaced modules, by their URL. */
const replaced = new Map();
/** The URLs that names have for those who import them. */
const places = new Map();

export function initialize({ port }) {
  replacements = port;
}

export function resolve(name, context, next) {
  if (Object.hasOwn(SEPARATE, name)) return { url: SEPARATE[name], shortCircuit: true };
  const { parentURL = 'data:' } = context;
  if (name === '@jest/globals') return { url: globalsFor(parentURL), shortCircuit: true };
  const key = `${name}\0${parentURL}`;
  if (!places.has(key)) places.set(key, placeOf(name, parentURL));
  const url = places.get(key);
  receiveReplaced();
  if (replaced.size > 0) {
    const place = replacementOf(url ?? name, parentURL);
    if (replaced.has(place)) return { url: place, shortCircuit: true };
  }
  return url === null ? next(name, context) : { url, shortCircuit: true };
}

/** The URL of the TypeScript file of that name. @returns null for other files and packages */
function placeOf(name, parentURL) {
  if (!/^(?:\.{0,2}\/|file:)/.test(name) || parentURL.includes('/node_modules/')) return null;
  const url = new URL(name, parentURL);
  if (url.protocol !== 'file:') return null;
  if (!/\.tsx?$/.test(url.pathname)) {
    const end = ['ts', 'tsx'].find((each) => existsSync(fileURLToPath(url).replace(/js$/, each)));
    if (end === undefined || !url.pathname.endsWith('.js')) return null;
    url.pathname = url.pathname.replace(/js$/, end);
  }
  const graph = graphOf(parentURL);
  const isReplaced = graph?.startsWith('xstate-') && url.pathname.endsWith('/default-interpreter.ts');
  if (isReplaced) url.pathname = new URL(XSTATE).pathname;
  if (graph !== null) url.searchParams.set('graph', graph);
  return url.href;
}

function globalsFor(parentURL) {
  const suite = new URL(parentURL).searchParams.get('suite');
  return suite === null ? FIXTURE_GLOBALS : `${SUITE_GLOBALS}?suite=${suite}`;
}

const graphOf = (url) => new URL(url).searchParams.get('graph');

/** What a suite replaced is taken over before the next import. */
function receiveReplaced() {
  for (let one = receiveMessageOnPort(replacements); one !== undefined; one = receiveMessageOnPort(replacements))
    replaced.set(replacementOf(one.message.url, one.message.suite), textOf(one.message));
}

/** A module that fails has its exports all the same, for those who import it by their names. */
const textOf = ({ url, text, fails }) => (fails ? `${text}\n${compiledText(fileURLToPath(url))}` : text);

/** The URL of what replaces a module in the graph of the one that imports it. */
function replacementOf(url, parentURL) {
  const place = new URL(url.startsWith('file:') ? url : `replaced:${url}`);
  place.search = new URLSearchParams({ graph: graphOf(parentURL), replaced: 'true' });
  return place.href;
}

export function load(url, context, next) {
  if (replaced.has(url)) return { format: 'module', source: replaced.get(url), shortCircuit: true };
  const { protocol, pathname } = new URL(url);
  if (protocol !== 'file:' || !/\.tsx?$/.test(pathname)) return next(url, context);
  return { format: 'module', source: compiledText(fileURLToPath(url)), shortCircuit: true };
}
