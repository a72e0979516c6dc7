// Withheld content is shown to no one but its audiences (C83): every route, command, exporter, inspector and member of
// the library is asked, and everything that comes out is searched. What is asked comes from the lists that the code
// itself works by, so nothing new can be left out.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { InspectionEvent } from 'xstate';
import { artifactRef } from '../../src/contract/artifact-ref.js';
import { CONTENT_READ } from '../../src/contract/run-state.js';
import { writeEvidence } from '../../src/runtime/evidence/write-evidence.js';
import { homePaths, openHome } from '../../src/runtime/home.js';
import { readLedgerSigner } from '../../src/runtime/ledger-key.js';
import { LedgerReader } from '../../src/runtime/ledger-reader.js';
import type { Route } from '../../src/service/http/route.js';
import { ROUTES } from '../../src/service/http/routes.js';
import { homeSource } from '../../src/service/inspector/ledger-source.js';
import type { InspectorSource } from '../../src/service/inspector/source.js';
import { tempFolder } from '../fixtures/temp-folder.js';
import { turnpike as command } from '../cli/fake-io.js';
import { HttpBench } from '../service/http/http-harness.js';
import { commandOutputs } from './canary-commands.js';
import { httpOutputs, type Output } from './canary-http.js';
import { libraryOutputs, plain, shown } from './canary-library.js';
import { canariesIn } from './canary-search.js';
import { CANARIES, CASE, ENTRY_CANARIES, plantedWorld, SHOWN, type CanaryWorld } from './canary-world.js';

/**
 * Free text that stands in entries, and so wherever entries are shown: it is no content of an artifact. A kind that
 * moves into artifacts is taken out of this list, and is searched for like all others.
 */
// This canary is one word, which a scope records as an identifier (C90).
const IN_ENTRIES = ['export reason'];

interface Walk {
  readonly outputs: number;
  readonly bytes: number;
  readonly leaks: readonly string[];
  /** Outputs in which the content of a lane was found that withholds nothing. */
  readonly shown: number;
  readonly entryTexts: ReadonlySet<string>;
}

async function walked(outputs: AsyncIterable<Output>): Promise<Walk> {
  let [count, bytes, open] = [0, 0, 0];
  const leaks: string[] = [];
  const entryTexts = new Set<string>();
  for await (const { name, bytes: output } of outputs) {
    count += 1;
    bytes += output.length;
    for (const { kind, form } of canariesIn(output, CANARIES)) leaks.push(`${name}: ${kind} as ${form}`);
    for (const { kind } of canariesIn(output, ENTRY_CANARIES)) entryTexts.add(kind);
    if (canariesIn(output, [SHOWN]).length > 0) open += 1;
  }
  return { outputs: count, bytes, leaks, shown: open, entryTexts };
}

let world: CanaryWorld;
const folder = tempFolder('canaries');

beforeAll(async () => {
  world = await plantedWorld();
});
afterAll(() => world.bench.close());

describe('S4-62: nobody but its audiences is shown what a lane withholds', () => {
  test('every canary is in the ledger, and the search finds it there', async () => {
    const { folded } = world.bench.turnpike.ledger;
    const found = new Set<string>();
    for await (const entry of folded.log()) {
      for (const artifact of await folded.artifactsOf(entry)) {
        if ('bytes' in artifact) for (const { kind } of canariesIn(artifact.bytes, CANARIES)) found.add(kind);
      }
    }
    // What a tool threw, and what did not have the form of its output, was never recorded.
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

  test('no member of the library, no inspector and no MCP client is shown it', async () => {
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

  test('the log has none of it', () => {
    expect(world.log.lines.length).toBeGreaterThan(0);
    expect(canariesIn(world.log.lines.join('\n'), CANARIES)).toEqual([]);
  });

  test("XState's inspectors of live runs are shown states and hashes", async () => {
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

describe('its audiences are shown it, and the ledger says so', () => {
  test('a person who may approve a request reads it over HTTP and by command', async () => {
    const fresh = await plantedWorld();
    const { bench, asked } = fresh;
    const inspector = homeSource(bench.turnpike.ledger, bench.turnpike.home);
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

describe('an export holds it only where its lanes let it, and people have approved', () => {
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

  test('it is denied where a lane does not', async () => {
    const { ending, kinds } = await bagOf(world, 'denied');
    expect(ending).toMatchObject({ state: 'denied', reason: 'export.content_withheld' });
    expect(kinds).toEqual([]);
  });

  test('it holds everything where all of them do', async () => {
    const exporting = await plantedWorld({ exportsContent: true });
    const { ending, kinds } = await bagOf(exporting, 'approved');
    expect(ending).toMatchObject({ state: 'completed' });
    expect(kinds.length).toBeGreaterThan(10);
    await exporting.bench.close();
  });
});

describe('planted leaks are found', () => {
  const leaksOf = async (outputs: AsyncIterable<Output>): Promise<string[]> => {
    const { leaks } = await walked(outputs);
    return [...new Set(leaks.map((leak) => leak.replace(/^.*?: (?=\S)/, '').replace(/ as .*$/, '')))];
  };
  const routesOf = (path: string): Route[] => ROUTES.filter((route) => route.method === 'GET' && route.path === path);

  test('an inspector that shows artifacts as they are stored', async () => {
    const { folded } = world.bench.turnpike.ledger;
    const artifact: InspectorSource['artifact'] = async (log_index, hash) => {
      for await (const entry of folded.log(log_index)) {
        const found = (await folded.artifactsOf(entry)).find((one) => artifactRef(one).hash_sha256 === hash);
        return found !== undefined && 'bytes' in found ? found.bytes : null;
      }
      return null;
    };
    const inspector = (own: InspectorSource): InspectorSource =>
      Object.assign(Object.create(own) as InspectorSource, { artifact, event: own.event.bind(own) });
    const routes = routesOf('/api/v1/events/{log_index}/artifacts/{sha256}');
    const leaks = await leaksOf(httpOutputs(world, { routes, inspector }));
    expect(leaks.length).toBeGreaterThan(10);
  });

  test('requests that are shown to everyone, as if everyone could approve them', async () => {
    const planted = await plantedWorld();
    const { ledger } = planted.bench.turnpike;
    const approval = ledger.approval.bind(ledger);
    ledger.approval = (at, now) => approval(at, now, { actor: 'berta', role: 'ATTORNEY_ADMIN' });
    const routes = routesOf('/api/v1/approvals/{run_id}/{digest}');
    const { leaks } = await walked(httpOutputs(planted, { routes }));
    expect(leaks.some((leak) => leak.includes('as observe: record that waits for approval'))).toBe(true);
    await planted.bench.close();
  });

  test('a bundle that is written without regard to lanes, also when it is packed', async () => {
    const { store, anchor } = openHome(homePaths(world.bench.home), { readOnly: true });
    const lines: string[] = [];
    const signer = readLedgerSigner(homePaths(world.bench.home).ledgerKey);
    const head = await anchor.read();
    if (signer === null || head?.note === undefined) throw new Error('the home has no signed head');
    const put = (line: string): Promise<void> => Promise.resolve(void lines.push(line));
    await writeEvidence(store, { ...head, note: head.note }, signer, put);
    await store.close();
    const text = lines.join('');
    expect(kindsIn(Buffer.from(text)).length).toBeGreaterThan(10);
    expect(kindsIn(gzipSync(text)).length).toBeGreaterThan(10);
  });

  test('a route, a command and a member that the walk does not know', async () => {
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

const kindsIn = (bytes: Uint8Array): string[] => canariesIn(bytes, CANARIES).map(({ kind }) => kind);
