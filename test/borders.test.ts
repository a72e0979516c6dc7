// Where JSON from outside enters, it is read by the strict scanner: JSON.parse takes the last of two equal members, and
// another reader of the text takes the first. JSON.parse itself has one home. Layers that read only what the ledger
// has recorded may use it, because the hash of every such text is compared.

import { describe, expect, test } from '@jest/globals';
import ts from 'typescript';
import { filesIn, nodesOf, parse } from './sources.js';

/** What they parse is recorded, or comes from the service itself (`inspector`). */
const RECORDED_LAYERS = [
  'machines/',
  'src/kernel/',
  'src/engine/',
  'src/kernel/replay/',
  'src/features/sessions/issued-steps.ts',
  'src/features/sessions/page/',
  'src/features/sessions/rules/',
  'src/features/sessions/tree/',
  'src/interfaces/inspector/page/',
];

const JSON_FILE = 'src/core/contract/json.ts';

/** Whatever is read here was written by something else: not even `parseOwnJson` may be used. */
const BORDERS = [
  'src/features/hooks/client-files/',
  'src/features/identity/provider/',
  'src/interfaces/inspector/xstate/',
  'src/stores/keys/',
  'src/features/upstreams/mcp/',
  'src/system/network/',
  'src/home/policy/',
  'src/stores/records/',
  'src/features/exports/bagit/',
  'src/features/hooks/commands/program/',
  'src/features/hooks/clients/',
  'src/features/hooks/dialects/',
  'src/features/hooks/hook-event.ts',
  'src/features/hooks/native-calls.ts',
  'src/names/',
  'src/core/ledger/proof/',
  'src/core/policy/',
  'src/host/configuration/',
  'src/runtime/effects/',
  'src/features/evidence/',
  'src/interfaces/inspector/flagged-evidence.ts',
  'src/runtime/ledger/open-evidence.ts',
  'src/features/sessions/checks/',
  'src/features/upstreams/',
  'src/core/step/',
];

/** Departures, each with its reason. One that is no longer there fails the test. */
const DEPARTURES: Readonly<Record<string, string>> = {
  'src/stores/sqlite/sqlite-binding.ts': 'the manifest of an installed package',
  'src/interfaces/inspector/contract/event-row.ts': 'the page shows an entry of the ledger',
  'src/features/hooks/clients/client-settings.ts': 'single strings of a text that was read strictly',
  'src/interfaces/mcp/read-message.ts': 'the id of a refused message, for the error that its client waits for',
};

const FILES = [...filesIn('machines', /\.ts$/), ...filesIn('src', /\.tsx?$/)];
const isBelow = (folders: readonly string[], path: string): boolean => folders.some((each) => path.startsWith(each));

/** Calls of JSON.parse, except for a copy of a value; calls of `json()` of a response. */
function laxReads(path: string): number {
  return nodesOf(parse(path)).filter((node) => {
    if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return false;
    const { expression, name } = node.expression;
    if (name.text === 'json') return node.arguments.length === 0;
    const [given] = node.arguments;
    const isCopy = given !== undefined && ts.isCallExpression(given) && given.expression.getText() === 'JSON.stringify';
    return expression.getText() === 'JSON' && name.text === 'parse' && !isCopy;
  }).length;
}

describe('JSON from outside', () => {
  test('is never read by JSON.parse', () => {
    const found = FILES.filter((path) => path !== JSON_FILE && !isBelow(RECORDED_LAYERS, path) && laxReads(path) > 0);
    expect(found).toEqual(Object.keys(DEPARTURES).sort());
    // Its one call is `parseOwnJson`.
    expect(laxReads(JSON_FILE)).toBe(1);
  });

  test('is not taken for JSON of this program at a border', () => {
    const users = FILES.filter(
      (path) =>
        path !== JSON_FILE &&
        nodesOf(parse(path)).some((node) => ts.isIdentifier(node) && node.text === 'parseOwnJson'),
    );
    expect(users.filter((path) => isBelow(BORDERS, path))).toEqual([]);
    expect(users.length).toBeGreaterThan(0);
  });

  test('the folders of these tables exist', () => {
    const all = [...RECORDED_LAYERS, ...BORDERS];
    expect(all.filter((folder) => !FILES.some((path) => path.startsWith(folder)))).toEqual([]);
  });
});
