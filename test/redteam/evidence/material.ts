// Real bundles, bags and archives of a real Turnpike: an agent with allowed, denied and rejected proposals; a lane that
// withholds content; an erased case; an export with an approval.

import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { manifestPolicySource, pinManifest } from '../../../src/home/policy/manifest-policy-source.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import { notePrivateKey, noteSigner, type NoteSigner } from '../../../src/core/ledger/proof/signed-note.js';
import { createHome, homePaths, openHome } from '../../../src/home/home.js';
import { withholdByLanes } from '../../../src/runtime/content/lane-withholding.js';
import { writeEvidence } from '../../../src/features/evidence/write-evidence.js';
import { requireSignedHead } from '../../../src/runtime/ledger/ledger-proofs.js';
import { openTurnpike, type Turnpike } from '../../../src/host/turnpike.js';
import type { Files } from './independent-bag.js';

/** The objects to mutate. The same every time they are made. */
export interface Material {
  readonly bundles: readonly string[];
  /** The files of bags, by path. */
  readonly bags: readonly Files[];
  readonly zips: readonly Buffer[];
  readonly signer: NoteSigner;
  /** Of another operator with the same name. */
  readonly stranger: NoteSigner;
}

const NAME = 'turnpike/redteam';
const keyText = (seed: number): string => notePrivateKey(NAME, Buffer.alloc(32, seed)) ?? '';
const signerOf = (seed: number): NoteSigner => {
  const signer = noteSigner(keyText(seed));
  if (signer === null) throw new Error('no key');
  return signer;
};

/** The lane of the agent: bundles contain hashes of its content, and an approved bag may contain the content. */
const WITHHOLDING = '    withholds_content: true\n    exports_content: true\n';
const FILES = ['lanes', 'roles', 'actions'] as const;

const root = (): string => {
  const here = fileURLToPath(import.meta.url);
  return here.slice(0, here.search(/\/(?:build\/)?test\/redteam\//));
};

function contract(folder: string, withholds: boolean): string {
  const made = join(folder, 'contract');
  cpSync(join(root(), 'policies/contract/v1/policy'), join(made, 'policy'), { recursive: true });
  const files = FILES.map((name) => {
    const path = join(made, `policy/${name}.yaml`);
    const text = readFileSync(path, 'utf8');
    const lanes = withholds ? text.replace('  - lane_id: SANDBOX_FILES\n', `$&${WITHHOLDING}`) : text;
    writeFileSync(path, name === 'lanes' ? lanes : text);
    return { path: `policy/${name}.yaml`, bytes: readFileSync(path), pin: { problem: 'never_committed' as const } };
  });
  writeFileSync(join(made, 'pins.json'), JSON.stringify(pinManifest(files)));
  return made;
}

interface Story {
  readonly withholds: boolean;
  readonly erases: boolean;
  /** The number of steps of the agent. */
  readonly steps: number;
}

let made = 0;

/** One Turnpike with one exported case; the caller removes its home. */
async function play(folder: string, { withholds, erases, steps }: Story): Promise<void> {
  const home = join(folder, 'home');
  await createHome(home, keyText(1));
  let [now, drawn] = [Date.parse('2026-01-01T00:00:00.000Z'), 0];
  const turnpike = await openTurnpike({
    home,
    policies: manifestPolicySource(contract(folder, withholds)),
    exports: join(folder, 'exports'),
    log: winstonLog('silent'),
    clock: { now: () => (now += 1), wake: () => () => undefined },
    ids: { draw: (prefix) => `${prefix}${String((drawn += 1)).padStart(21, '0')}` },
    control: false,
  });
  await work(turnpike, 'case-gone', 2);
  await work(turnpike, 'case-0001', steps);
  if (erases) await turnpike.erase({ case: 'case-gone', actor: 'operator' });
  for (const format of ['folder', 'zip'] as const) await exported(turnpike, format);
  await turnpike.close();
}

async function work(turnpike: Turnpike, case_id: string, steps: number): Promise<void> {
  const agent = await turnpike.startAgent({ case: case_id });
  const acts = [
    ['WRITE_FILE', { path: '/sandbox/a.txt', content: 'alpha' }],
    ['WRITE_FILE', { path: '/sandbox/a.sh', content: 'denied' }],
    ['READ_FILE', { path: '/sandbox/a.txt' }],
    ['READ_FILE', { path: '/etc/passwd' }],
    ['LIST_FILES', { path: '/sandbox/' }],
  ] as const;
  for (let step = 0; step < steps; step += 1) {
    const [action, args] = acts[step % acts.length] ?? acts[0];
    const id = `00000000-0000-4000-8000-${String((made += 1)).padStart(12, '0')}`;
    await agent.submit(JSON.stringify({ schema_version: '1.0.0', id, reasoning: 'It is needed.', action, args }));
  }
  await agent.end();
}

async function exported(turnpike: Turnpike, format: 'folder' | 'zip'): Promise<void> {
  const destination = format === 'zip' ? 'bag.zip' : 'bag';
  const by = { actor: 'anna', role: 'ATTORNEY_ADMIN' };
  const run = await turnpike.export({ ...by, case: 'case-0001', reason: 'a request', destination, format });
  const digests = [run.digest ?? ''];
  await turnpike.approve({ run: run.run_id, digests, decision: 'approve', ...by, actor: 'berta' });
  const { state } = await run.finished;
  if (state !== 'completed') throw new Error(`the export is ${state}`);
}

async function bundleOf(home: string, signer: NoteSigner): Promise<string> {
  const { store, externalHeadStore } = openHome(homePaths(home), { readOnly: true });
  const lines: string[] = [];
  const head = requireSignedHead(await externalHeadStore.read());
  await writeEvidence(withholdByLanes(store), head, signer, (line) => Promise.resolve(void lines.push(line)));
  await store.close();
  return lines.join('');
}

function filesBelow(folder: string): Files {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = entries.map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1)).sort();
  return Object.fromEntries(paths.map((path) => [path, readFileSync(join(folder, path))]));
}

const STORIES: readonly Story[] = [
  { withholds: false, erases: false, steps: 5 },
  { withholds: true, erases: false, steps: 2 },
  { withholds: false, erases: true, steps: 3 },
];

export async function makeMaterial(): Promise<Material> {
  made = 0;
  const signer = signerOf(1);
  const material = { bundles: [] as string[], bags: [] as Files[], zips: [] as Buffer[] };
  for (const story of STORIES) {
    const folder = mkdtempSync(join(tmpdir(), 'turnpike-redteam-'));
    try {
      mkdirSync(join(folder, 'exports'));
      await play(folder, story);
      material.bundles.push(await bundleOf(join(folder, 'home'), signer));
      if (story.withholds) continue;
      material.bags.push(filesBelow(join(folder, 'exports/bag')));
      material.zips.push(readFileSync(join(folder, 'exports/bag.zip')));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
  return { ...material, signer, stranger: signerOf(2) };
}
