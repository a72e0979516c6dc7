// The specs in the documents are valid, and their commands distinguish finished from unfinished work.

import { describe, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isVerifyTask, type SessionSpec } from '../../src/features/sessions/contract/session-spec.js';
import { loadPolicy } from '../../src/core/policy/files/check-policy.js';
import { readSpec } from '../../src/features/sessions/spec/read-spec.js';
import { turnpike } from '../interfaces/cli/fake-io.js';
import { shippedBytes } from '../fixtures/shipped-policy.js';
import { tempFolder } from '../fixtures/temp-folder.js';
import { ROOT, textOf } from '../sources.js';

const LANES = new Set(loadPolicy(shippedBytes()).lanes.keys());

describe('docs/examples/spec.yaml', () => {
  const { spec, findings } = readSpec(readFileSync(join(ROOT, 'docs/examples/spec.yaml')), LANES);
  const { phases }: SessionSpec = spec!;

  test('is a valid spec: three phases, twelve tasks, and in each phase a verification and a gate', () => {
    expect(findings).toEqual([]);
    expect(phases.length).toBe(3);
    expect(phases.flatMap(({ tasks }) => tasks).length).toBe(12);
    expect(phases.filter(({ tasks, gate }) => gate === undefined || !tasks.some(isVerifyTask))).toEqual([]);
    expect(phases.map(({ gate }) => gate?.reviewer)).toEqual(['command', 'manual', 'command']);
  });

  const sandbox = tempFolder('spec');
  const put = (files: Readonly<Record<string, string>>): void => {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(sandbox, name)), { recursive: true });
      writeFileSync(join(sandbox, name), text);
    }
  };

  /** The files that a good agent would write, phase by phase. */
  const chapters = {
    'handbook/1-welcome.md': '# Welcome\nA house for everybody. Nobody knows everything on the first day.\n',
    'handbook/2-first-day.md': '# Your first day\nCome on Tuesday at ten.\n',
    'handbook/3-emergencies.md': '# In an emergency\nCall Ben.\n',
  };
  const work: readonly Readonly<Record<string, string>>[] = [
    {
      'notes/contacts.md': '- Ada: the keys\n- Ben: first aid\n- Cho: the van\n',
      'notes/hours.md': '- Tuesday: 10:00-16:00\n- Saturday: 9:00-13:00\n',
      'notes/safety.md': '- fire: leave the house, call Ada\n- injury: call Ben\n- theft: call Ada\n',
    },
    chapters,
    {
      'handbook.md': `# A handbook\n\n${Object.values(chapters).join('\n')}`,
      'contents.md': '1. Welcome\n2. Your first day\n3. In an emergency\n',
    },
  ];

  /** The exit code of every command of a phase, as the platform would run it. */
  const run = (index: number): (number | null)[] => {
    const { tasks, gate } = phases[index]!;
    const programs = [...tasks.filter(isVerifyTask), ...(gate?.command === undefined ? [] : [{ ...gate, id: 'gate' }])];
    return programs.map(({ command, cwd = '/sandbox/' }) => {
      const [program, ...args] = command!;
      expect(program).toBe('node');
      const folder = join(sandbox, cwd.slice('/sandbox/'.length));
      mkdirSync(folder, { recursive: true });
      return spawnSync(process.execPath, args, { cwd: folder, stdio: 'ignore' }).status;
    });
  };

  test.each([0, 1, 2])('the commands of phase %d fail before its work is done, and succeed after it', (index) => {
    const before = run(index);
    expect(before).toEqual(before.map(() => 1));
    put(work[index]!);
    expect(run(index)).toEqual(before.map(() => 0));
  });

  test('faulty work is detected', () => {
    put({ 'handbook/2-first-day.md': '# Your first day\nWhen do we open???\n', 'notes/hours.md': 'Tuesdays\n' });
    expect([run(0), run(1), run(2)]).toEqual([[1, 0], [1], [1, 0, 0]]);
  });
});

describe('docs/sessions.md', () => {
  const page = textOf('docs/sessions.md');
  const [, yaml = ''] = /```yaml\n([^]*?)```/.exec(page) ?? [];
  const [, command = '', shown = ''] = /```\n\$ turnpike (session check \S+)\n([^]*?)```/.exec(page) ?? [];

  test('its example is a valid spec', () => {
    const { spec, findings } = readSpec(Buffer.from(yaml), LANES);
    expect(findings).toEqual([]);
    expect(spec).not.toBeNull();
  });

  test('its findings are those of the command for the spec, with two mistakes', async () => {
    const folder = tempFolder('spec');
    const circle = yaml.replace('acceptance:', 'depends_on: [pictures]\n        acceptance:');
    writeFileSync(join(folder, 'field-guide.yaml'), circle.replace('/sandbox/tools', '/srv/tools'));
    expect(await turnpike(folder, command.split(' '))).toMatchObject({ code: 1, stdout: shown });
    rmSync(folder, { recursive: true });
  });
});
