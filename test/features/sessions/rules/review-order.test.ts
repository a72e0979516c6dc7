// The order to a reviewer: the tasks, their results, and the changed files.

import { describe, expect, test } from '@jest/globals';
import type { JsonObject } from '../../../../src/core/contract/json.js';
import type { SpecTask } from '../../../../src/features/sessions/contract/session-spec.js';
import {
  REVIEWED_FILES_MAX,
  REVIEWED_CHARS_MAX,
  mergeChangedFiles,
} from '../../../../src/features/sessions/rules/review-order.js';
import { SessionDriver } from '../../../fixtures/session.js';
import { make, phase, spec, verify } from '../../../fixtures/spec.js';
import type { SandboxFacts } from '../../../../src/core/contract/run/effect.js';

const GATE = { reviewer: 'callback' } as const;
const NO_FILES: SandboxFacts = { paths: [], usage: { bytes: 0, files: 0 } };

/** The order for the review of the first phase, whose tasks are all completed. */
function orderFor(tasks: readonly SpecTask[], each: (d: SessionDriver) => void = () => undefined): JsonObject {
  const d = new SessionDriver({ spec: spec(phase('p1', tasks, GATE), phase('p2', [make('z')], GATE)) }).start();
  d.next();
  return reviewed(d, each);
}

function reviewed(d: SessionDriver, each: (d: SessionDriver) => void): JsonObject {
  while (d.outstanding.type !== 'run_fidelity_gate') {
    each(d);
    d.work();
  }
  const { step_id, phase_id } = d.outstanding.step;
  d.ask({ name: 'review', step_id, phase_id: phase_id ?? '' });
  return d.checking.effect.args;
}

function write(d: SessionDriver, path: string): void {
  const run_id = d.outstanding.step.run_id ?? '';
  d.act('WRITE_FILE', { path, content: 'x' }, NO_FILES, run_id);
  const perform = d.tree.pending.find(({ kind }) => kind === 'perform');
  d.done(perform?.run_id ?? '', { bytes_written: 1 });
}

describe('S3-29: the order lists each task', () => {
  test('with its instruction and acceptance criteria; for a verification, with its result', () => {
    const tasks = [make('a', [], { acceptance: ['It rhymes.'] }), make('b'), verify('v')];
    expect(orderFor(tasks)['tasks']).toEqual([
      {
        id: 'a',
        title: 'Make a',
        status: 'completed',
        instruction: 'Write /sandbox/a.md.',
        acceptance: ['It rhymes.'],
      },
      { id: 'b', title: 'Make b', status: 'completed', instruction: 'Write /sandbox/b.md.', acceptance: [] },
      { id: 'v', title: 'Verify v', status: 'completed' },
    ]);
  });

  test('up to a limit of text: a task whose texts exceed it is listed without them', () => {
    const long = { acceptance: Array.from({ length: 16 }, () => 'x'.repeat(2_000)), instruction: 'i'.repeat(32_768) };
    const tasks = Array.from({ length: 6 }, (_, i) => make(`t${i}`, [], i === 4 ? {} : long));
    const listed = orderFor(tasks)['tasks'] as JsonObject[];
    expect(listed.map(({ instruction }) => instruction !== undefined)).toEqual([true, true, true, true, true, false]);
    expect(JSON.stringify(listed).length).toBeLessThan(REVIEWED_CHARS_MAX + 1_000);
  });
});

describe('S3-34: the files that a phase has changed', () => {
  test('are those of all its steps, and of no other phase', () => {
    const d = new SessionDriver({
      spec: spec(phase('p1', [make('a'), make('b')], GATE), phase('p2', [make('z')], GATE)),
    }).start();
    d.next();
    const args = reviewed(d, () => write(d, `/sandbox/${d.outstanding.step.task_id ?? ''}.md`));
    expect(args['files_touched']).toEqual(['/sandbox/a.md', '/sandbox/b.md']);
    d.checked();
    d.next(d.report());
    expect(reviewed(d, () => write(d, '/sandbox/z.md'))['files_touched']).toEqual(['/sandbox/z.md']);
  });

  test('are at most a thousand, each once', () => {
    const files = Array.from({ length: REVIEWED_FILES_MAX }, (_, i) => `/sandbox/${i}`);
    const full = mergeChangedFiles({ phase_id: 'p', files: ['/sandbox/7'] }, 'p', files);
    expect(full.files).toHaveLength(REVIEWED_FILES_MAX);
    expect(mergeChangedFiles(full, 'p', ['/sandbox/more']).files).toEqual(full.files);
    expect(mergeChangedFiles(full, 'q', [])).toEqual({ phase_id: 'q', files: [] });
  });
});

test("the changes of a step's runs are remembered exactly as long as the step can be reported", () => {
  const d = new SessionDriver({ spec: spec(phase('p1', [make('a'), make('b')])) }).start();
  const touched = () => {
    const { touched } = d.tree.snapshot().parts?.['sessions'] as { readonly touched: readonly [string, string[]][] };
    return touched.map(([, paths]) => paths);
  };
  d.next();
  write(d, '/sandbox/a.md');
  d.pause();
  d.resume();
  write(d, '/sandbox/b.md');
  expect(touched()).toEqual([['/sandbox/a.md'], ['/sandbox/b.md']]);
  expect(d.next(d.report('success', { files_touched: ['a.md', 'b.md'] })).success).toBe(true);
  expect(touched()).toEqual([]);
});
