// One tree with two agent runs, and trees that share a tick: the actions of one must not count as those of another.
// E2 is an invariant of ledger-engine.ts.

import { afterEach, expect, test } from '@jest/globals';
import { memoryHeadStore } from '../../src/stores/memory/memory-head-store.js';
import { memoryStore } from '../../src/stores/memory/memory-ledger-store.js';
import { ephemeralKey } from '../../src/stores/keys/session-key.js';
import { winstonLog } from '../../src/system/winston-log.js';
import { artifactRef, type Artifact } from '../../src/core/contract/artifact-ref.js';
import type { StepTrace } from '../../src/core/contract/run/step-trace.js';
import { embeddedEngine } from '../../src/engine/embedded.js';
import type { NewInput, TreeEngine } from '../../src/engine/tree-engine.js';
import type { LedgerStore } from '../../src/engine/ports/ledger/ledger-store.js';
import { ForwardingStore } from '../fixtures/forwarding-store.js';
import { ManualClock } from '../fixtures/manual-clock.js';
import { editedPolicy, machinesArtifact, proposal } from '../fixtures/tree.js';
import { World } from './tree-engine.conformance.js';

const TREE = 'run_sharedtree01';
const OTHER = 'run_sharedtree02';
const POLICIES = editedPolicy({
  actions: [['duplicate_proposal_ids: reject', 'duplicate_proposal_ids: replay']],
});
const MACHINES = machinesArtifact(POLICIES);

/** A store with records of its own, with or without a write in its transaction. */
class RecordingStore extends ForwardingStore {
  dirty = false;
  override get records(): LedgerStore['records'] {
    const records = {
      isDirty: () => this.dirty,
      open: () => undefined,
      abandon: () => undefined,
      get dirty() {
        return this.isDirty();
      },
    };
    return records as unknown as LedgerStore['records'];
  }
}

let engine: TreeEngine;
let store: RecordingStore;
let world: World;
afterEach(async () => {
  await engine.stop();
  await store.close();
});

async function open(): Promise<void> {
  store = new RecordingStore(memoryStore());
  world = new World();
  engine = embeddedEngine({
    store,
    externalHeadStore: memoryHeadStore(await store.head()),
    clock: new ManualClock(),
    log: winstonLog('silent'),
    effects: world,
    secrets: ephemeralKey(),
    listeners: world.listeners,
    defer: (task) => void setImmediate(task),
    liveTreesMax: 16,
  });
  await engine.start();
}

const submit = (tree: string, input: NewInput, materials: readonly Artifact[] = [], rememberInputId = false) =>
  engine.submit(tree, { input, materials, rememberInputId });

function openTree(tree: string): Promise<unknown> {
  const [lanes, roles, actions] = POLICIES.map((artifact) => {
    const ref = artifactRef(artifact);
    return { git_sha: 'b'.repeat(40), sha256: ref.hash_sha256, source: 'manifest' as const, artifact: ref };
  });
  const input: NewInput = {
    kind: 'open',
    run_id: tree,
    input_id: 'open',
    correlation_id: 'cor_1',
    case_id: 'case-1',
    taxonomy_versions: null,
    scope: {},
    policies: { lanes: lanes!, roles: roles!, actions: actions! },
    machines: artifactRef(MACHINES),
  };
  return submit(tree, input, [...POLICIES, MACHINES]);
}

const startAgent = (tree: string, input_id: string) =>
  submit(tree, {
    kind: 'start_agent',
    run_id: tree,
    input_id,
    actor: { actor_type: 'agent', actor_id: 'tester' },
    role_id: 'SANDBOX_AGENT',
    lane_id: 'SANDBOX_FILES',
    exposure: 'detailed',
    link: 'attached',
    idle_ms: null,
    budget: null,
  });

function propose(run_id: string, payload: object, input_id: string, rememberInputId = false) {
  const artifact: Artifact = { kind: 'raw_payload', case_id: 'case-1', bytes: Buffer.from(JSON.stringify(payload)) };
  const input = { kind: 'proposal', run_id, input_id, payload: artifactRef(artifact), tokens: null } as const;
  return submit(run_id.split('.')[0]!, input, [artifact], rememberInputId);
}

async function traces(tree: string): Promise<StepTrace[]> {
  const found: StepTrace[] = [];
  for await (const { type, text } of store.tree(tree)) {
    if (type === 'step_trace') found.push((JSON.parse(text) as { body: StepTrace }).body);
  }
  return found;
}

test('C19: a proposal of one agent run is never replayed to another, whose own steps are not its answer', async () => {
  await open();
  await openTree(TREE);
  for (const input_id of ['first', 'second']) await startAgent(TREE, input_id);
  const thought = proposal('THINK', {});
  await propose(`${TREE}.1`, thought, 'one');
  // The next action of the other run must not count as the result of the first run's proposal.
  await propose(`${TREE}.2`, proposal('LIST_FILES', { path: '/sandbox/' }), 'two');
  await propose(`${TREE}.2`, thought, 'three');
  await propose(`${TREE}.1`, thought, 'four');
  expect(await traces(TREE)).toMatchObject([
    { run_id: `${TREE}.1`, outcome: 'SUCCESS', replay_of: null },
    { run_id: `${TREE}.2`, replay_of: null },
    { run_id: `${TREE}.2`, outcome: 'VALIDATION_ERROR', rule_id: 'proposal.response_not_at_hand', replay_of: null },
    { run_id: `${TREE}.1`, replay_of: 1 },
  ]);
});

test('D4: a rejected input of a caller may be sent again under its id, and an accepted one may not', async () => {
  await open();
  await openTree(TREE);
  await startAgent(TREE, 'first');
  const thought = proposal('THINK', {});
  expect(await propose(`${TREE}.2`, thought, 'early', true)).toEqual({ refused: true, repeat_of: null });
  await startAgent(TREE, 'second');
  expect(await propose(`${TREE}.2`, thought, 'early', true)).toEqual({ refused: false, repeat_of: null });
  expect(await propose(`${TREE}.2`, thought, 'early', true)).toMatchObject({ repeat_of: expect.any(Number) });
  expect(await traces(TREE)).toHaveLength(1);
});

test('E2: a tree that fails while records wait in the transaction takes the whole tick along', async () => {
  await open();
  for (const tree of [TREE, OTHER]) {
    await openTree(tree);
    await startAgent(tree, 'first');
  }
  // A local read must answer at once: one that does not is a bug that the tree meets in the middle of the input.
  world.onPerform = () => {
    store.dirty = true;
    return Promise.resolve({ status: 'done', result: {} });
  };
  const results = await Promise.allSettled([
    propose(`${TREE}.1`, proposal('LIST_FILES', { path: '/sandbox/' }), 'broken'),
    propose(`${OTHER}.1`, proposal('THINK', {}), 'beside'),
  ]);
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(world.failure).not.toBeNull();
  expect(await traces(OTHER)).toEqual([]);
});
