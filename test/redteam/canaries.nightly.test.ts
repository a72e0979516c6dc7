// Withheld content is shown only to its audiences (C83). The walk queries every route, command, exporter, inspector and
// member of the library, and searches all output. Its queries come from the lists that the code itself uses, so no new
// one can be missed.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { InspectionEvent } from 'xstate';
import { CONTENT_READ } from '../../src/core/contract/run/run-context.js';
import { LedgerReader } from '../../src/runtime/ledger/ledger-reader.js';
import type { Route } from '../../src/interfaces/http/routes/route.js';
import { ROUTES } from '../../src/interfaces/http/routes/system-routes.js';
import { homeInspectorSource } from '../../src/interfaces/inspector/ledger-inspector-source.js';
import { tempFolder } from '../fixtures/temp-folder.js';
import { turnpike as command } from '../interfaces/cli/fake-io.js';
import { HttpBench } from '../interfaces/http/http-harness.js';
import { commandOutputs } from './canary-commands.js';
import { httpOutputs } from './canary-http.js';
import { PLANTED_LEAKS } from './canary-leaks.js';
import { libraryOutputs, plain, shown } from './canary-library.js';
import { canariesIn } from './canary-search.js';
import { kindsIn, walked } from './canary-walk.js';
import { CANARIES, CASE, plantedWorld, type CanaryWorld } from './canary-world.js';

/**
 * Free text in entries, which every view of entries shows: it is not content of an artifact. A kind that moves into
 * artifacts is removed from this list, and is searched for like all others.
 */
// This canary is one word, which a scope records as an identifier (C90).
const IN_ENTRIES = ['export reason'];

let world: CanaryWorld;
const folder = tempFolder('canaries');

beforeAll(async () => {
  world = await plantedWorld();
});
afterAll(() => world.bench.close());

describe('S4-62: content that a lane withholds is shown only to its audiences', () => {
  test('every canary is in the ledger, and the search finds it there', async () => {
    const { folded } = world.bench.turnpike.ledger;
    const found = new Set<string>();
    for await (const entry of folded.log()) {
      for (const artifact of await folded.artifactsOf(entry)) {
        if ('bytes' in artifact) for (const { kind } of canariesIn(artifact.bytes, CANARIES)) found.add(kind);
      }
    }
    // Exceptions of a tool, and output that did not match its schema, were never recorded.
    const never = ['partial output', 'tool error', 'tool failure'];
    expect(
      CANARIES.map(({ kind }) => kind)
        .filter((kind) => !found.has(kind))
        .sort(),
    ).toEqual(never);
  });

  test('no command and no file that one writes shows it', async () => {
    const walk = await walked(commandOutputs(world, folder));
    expect(walk.leaks).toEqual([]);
    expect(walk.outputs).toBeGreaterThan(300);
    expect(walk.shown).toBeGreaterThan(0);
    expect([...walk.entryTexts].sort()).toEqual(IN_ENTRIES);
  });

  test('no member of the library, no inspector and no MCP client gets it', async () => {
    const walk = await walked(libraryOutputs(world));
    expect(walk.leaks).toEqual([]);
    expect(walk.outputs).toBeGreaterThan(40);
    expect(walk.shown).toBeGreaterThan(0);
  });

  test('no route shows it', async () => {
    const walk = await walked(httpOutputs(world));
    expect(walk.leaks).toEqual([]);
    expect(walk.outputs).toBeGreaterThan(1_000);
    expect(walk.shown).toBeGreaterThan(0);
  });

  test('the log contains none of it', () => {
    expect(world.log.lines.length).toBeGreaterThan(0);
    expect(canariesIn(world.log.lines.join('\n'), CANARIES)).toEqual([]);
  });

  test("XState's inspectors of live runs get states and hashes", async () => {
    const events: string[] = [];
    const inspect = (event: InspectionEvent): void => void events.push(shown(plain(event)));
    const { bench } = await plantedWorld({ interpreter: 'xstate', inspect });
    await bench.close();
    expect(events.length).toBeGreaterThan(200);
    const text = events.join('\n');
    expect(canariesIn(text, CANARIES)).toEqual([]);
    expect(text).toContain('sha256');
  });
});

describe('its audiences get it, and the ledger records that', () => {
  test('a person who may approve a request reads it over HTTP and by command', async () => {
    const fresh = await plantedWorld();
    const { bench, asked } = fresh;
    const inspector = homeInspectorSource(bench.turnpike.ledger, bench.turnpike.home);
    const http = await HttpBench.on(bench, { inspector });
    const approver = http.token({ actor: 'berta', role: 'ATTORNEY_ADMIN', rights: ['approve'] });
    const kinds = new Set<string>();
    for (const { run_id, digest } of asked) {
      const answer = await (await http.ask(`/approvals/${run_id}/${digest}`, approver)).text();
      const argv = ['approvals', run_id, digest, '--actor', 'carla', '--role', 'ATTORNEY_ADMIN', '--home', bench.home];
      const { stdout, code } = await command(folder, argv);
      expect(code).toBe(0);
      for (const { kind } of canariesIn(answer, CANARIES)) {
        kinds.add(kind);
        expect(canariesIn(stdout, CANARIES).map((found) => found.kind)).toContain(kind);
      }
    }
    expect([...kinds].sort()).toEqual(['promoted record', 'record that waits for approval']);
    const readers = (await bench.entries()).flatMap((entry) =>
      entry.type === 'audit_event' && entry.body.outcome_reason === CONTENT_READ ? [entry.body.actor.actor_id] : [],
    );
    expect(readers.sort()).toEqual(['berta', 'berta', 'carla', 'carla']);
    await http.server.close();
    await inspector.close();
    await bench.close();
  });
});

describe('an export contains it only if its lanes permit that and people have approved', () => {
  const bagOf = async (
    of: CanaryWorld,
    locator: string,
  ): Promise<{ readonly ending: object; readonly kinds: readonly string[] }> => {
    const { turnpike } = of.bench;
    const anna = { actor: 'anna', role: 'ATTORNEY_ADMIN' } as const;
    const run = await turnpike.export({ ...anna, case: CASE, reason: 'a request', destination: locator });
    if (run.digest !== null) {
      const ballot = { run: run.run_id, digests: [run.digest], decision: 'approve' as const };
      await turnpike.approve({ ...ballot, actor: 'berta', role: 'ATTORNEY_ADMIN' });
    }
    return { ending: await run.finished, kinds: kindsBelow(join(turnpike.exports ?? '', locator)) };
  };

  test('it is denied if a lane does not permit it', async () => {
    const { ending, kinds } = await bagOf(world, 'denied');
    expect(ending).toMatchObject({ state: 'denied', reason: 'export.content_withheld' });
    expect(kinds).toEqual([]);
  });

  test('it contains everything if all lanes permit it', async () => {
    const exporting = await plantedWorld({ exportsContent: true });
    const { ending, kinds } = await bagOf(exporting, 'approved');
    expect(ending).toMatchObject({ state: 'completed' });
    expect(kinds.length).toBeGreaterThan(10);
    await exporting.bench.close();
  });
});

describe('planted leaks are found', () => {
  test.each(PLANTED_LEAKS.map((leak) => [leak.name, leak] as const))('%s', async (_name, leak) => {
    expect(await leak.isFound(world)).toBe(true);
  });

  test('a route, a command and a member that the walk does not know fail it', async () => {
    const [route] = ROUTES;
    const planted = { ...route, method: 'POST', path: '/api/v1/planted' } as Route;
    await expect(walked(httpOutputs(world, { routes: [planted] }))).rejects.toThrow(/no body for POST/);
    await expect(walked(commandOutputs(world, folder, [{ name: 'planted' }]))).rejects.toThrow(/no lines for planted/);
    Object.assign(LedgerReader.prototype, { planted: () => null });
    await expect(walked(libraryOutputs(world))).rejects.toThrow(/does not know LedgerReader.planted/);
    Reflect.deleteProperty(LedgerReader.prototype, 'planted');
  });
});

function kindsBelow(path: string): readonly string[] {
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return [];
  const files = readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return [...new Set(files.flatMap(({ parentPath, name }) => kindsIn(readFileSync(join(parentPath, name)))))];
}
