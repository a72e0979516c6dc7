import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';
import { gunzipSync } from 'node:zlib';
import { createHome } from '../../../src/home/home.js';
import { diffDefinitions } from '../../../src/kernel/replay/machines-diff.js';
import type { JsonObject } from '../../../src/core/contract/json.js';
import { turnpike } from '../../interfaces/cli/fake-io.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { ROOT } from '../../root.js';

const folder = tempFolder('machines');
const home = join(folder, 'home');
let run_id = '';

beforeAll(async () => {
  await createHome(home);
  const golden = join(ROOT, 'test/fixtures/histories/everything');
  writeFileSync(join(home, 'ledger.db'), gunzipSync(readFileSync(`${golden}.db.gz`)));
  const keys = JSON.parse(readFileSync(`${golden}.keys.json`, 'utf8')) as Record<string, string>;
  mkdirSync(join(home, 'keys/cases'), { recursive: true });
  for (const [name, text] of Object.entries(keys)) writeFileSync(join(home, 'keys/cases', name), text, { mode: 0o600 });
  const { text } = await command('replay', '--until', '@0', '--json');
  run_id = (JSON.parse(text) as { runs: { run_id: string }[] }).runs[0]?.run_id ?? '';
});

async function command(...args: string[]) {
  const { code, stdout } = await turnpike(folder, [...args, '--home', home]);
  return { code, text: stdout };
}

const light = (states: JsonObject, more: JsonObject = {}): JsonObject => ({
  lamp: { id: 'lamp', initial: 'off', states },
  ...more,
});
const before = light({ off: { on: { PRESS: 'on' } }, on: { on: { PRESS: { target: 'off', actions: 'click' } } } });
const after = light(
  {
    off: { on: { PRESS: [{ guard: 'powered', target: 'on' }] } },
    on: { on: { PULL: 'off' } },
    broken: { type: 'final' },
  },
  { flags: [1], registrations: {} },
);

test('S2-06: names what was added, removed and changed between two definitions', () => {
  expect(diffDefinitions(before, before)).toMatchObject({ same: true, machines: [] });
  const { same, machines, flags, others } = diffDefinitions(before, after);
  expect([same, flags, others]).toEqual([false, { added: [1], removed: [] }, ['registrations']]);
  const [lamp] = machines;
  expect(lamp?.states.added).toEqual([{ name: 'broken', shape: '{"type":"final"}' }]);
  const edge = { place: 0, guard: null, actions: [] };
  expect(lamp?.transitions).toEqual({
    added: [{ ...edge, source: 'on', event: 'PULL', target: 'off' }],
    removed: [{ ...edge, source: 'on', event: 'PRESS', target: 'off', actions: ['click'] }],
    changed: [
      {
        before: { ...edge, source: 'off', event: 'PRESS', target: 'on' },
        after: { ...edge, source: 'off', event: 'PRESS', target: 'on', guard: 'powered' },
      },
    ],
  });
});

test('S2-06: `machines diff` takes runs, hashes, files and the current machines; exit code 0 same, 1 different, 2 wrong usage', async () => {
  expect(await command('machines', 'diff', run_id, run_id)).toMatchObject({ code: 0, text: 'the same machines\n' });
  writeFileSync(join(folder, 'a.json'), JSON.stringify(before));
  writeFileSync(join(folder, 'b.json'), JSON.stringify(after));
  const { code, text } = await command('machines', 'diff', 'a.json', 'b.json');
  expect(code).toBe(1);
  expect(text).toContain('  ~ off -- PRESS --> on\n    now off -- PRESS --> on  if powered\n');
  expect(text).toContain('  + state broken');
  expect(await command('machines', 'diff', 'current', 'a.json', '--json')).toMatchObject({ code: 1 });
  for (const wrong of ['run_nobody', 'ffffffff', 'none.json']) {
    expect(await command('machines', 'diff', wrong, 'current')).toMatchObject({ code: 2 });
  }
});

test('U-06: `replay --until` shows runs and sessions at an entry; a missing entry is wrong usage', async () => {
  const { entries } = JSON.parse((await command('replay', '--json')).text) as { entries: number };
  const shown = await command('replay', '--until', `@${entries - 1}`);
  expect(shown).toMatchObject({ code: 0 });
  expect(shown.text).toMatch(/^after @215 .*: 7 trees, 5 of them ended\n/u);
  expect(shown.text).toMatch(/ses_\S+ +running +- +ses_\S+ \(implement_task\) +1\n/u);
  expect(shown.text).toMatch(/agent +running +step \d+: running.ready/u);
  const alone = await command('replay', run_id, '--until', '3', '--all', '--json');
  expect(JSON.parse(alone.text)).toMatchObject({ until: 3, trees: { begun: 1, ended: 0 } });
  for (const until of [String(entries), '-1', 'x']) {
    expect(await command('replay', `--until=${until}`)).toMatchObject({ code: 2 });
  }
  expect(await command('replay', '--all')).toMatchObject({ code: 2 });
});
