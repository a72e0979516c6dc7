// Listing reads every session: the pass yields, is charged to its caller, and can be cancelled.

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { ReadControl } from '../../../src/engine/ports/pace.js';
import { HttpBench } from '../../interfaces/http/http-harness.js';

const SESSIONS = 4;
const specOf = (n: number) => ({
  spec_version: 1 as const,
  id: `spec-${n}`,
  title: 'One file',
  phases: [{ id: 'p1', title: 'One', tasks: [{ id: 't1', title: 'First', instruction: 'Write a.md.' }] }],
});

let http: HttpBench;
beforeEach(async () => {
  http = await HttpBench.open({ liveTreesMax: 1 });
  for (let n = 0; n < SESSIONS; n += 1) {
    await http.bench.turnpike.sessions.start({ spec: specOf(n), by: { actor: 'anna', role: 'maintainer' } });
  }
});
afterEach(() => http.close());

test('yields between the sessions that it reads', async () => {
  let pauses = 0;
  const pause = (): undefined => void (pauses += 1);
  const control: ReadControl = { signal: new AbortController().signal, pause };
  expect(await http.bench.turnpike.sessions.list(undefined, control)).toHaveLength(SESSIONS);
  expect(pauses).toBeGreaterThanOrEqual(SESSIONS);
});

test('stops reading when its client has disconnected', async () => {
  const client = new AbortController();
  let read = 0;
  const pause = (): undefined => {
    client.signal.throwIfAborted();
    read += 1;
    if (read === 2) client.abort();
  };
  const listing = http.bench.turnpike.sessions.list(undefined, { signal: client.signal, pause });
  await expect(listing).rejects.toMatchObject({ name: 'AbortError' });
  expect(read).toBe(2);
  expect(await http.bench.turnpike.sessions.list()).toHaveLength(SESSIONS);
});

test('over HTTP is charged to the requesting token', async () => {
  const { sessions } = http.bench.turnpike;
  const controls: unknown[] = [];
  const list = sessions.list.bind(sessions);
  const noting: typeof list = (spec_id, control) => {
    controls.push(control);
    return list(spec_id, control);
  };
  Object.assign(sessions, { list: noting });
  const answer = await http.ask('/sessions', http.token({ rights: ['sessions'] }));
  expect(((await answer.json()) as { data: { sessions: unknown[] } }).data.sessions).toHaveLength(SESSIONS);
  expect(controls).toEqual([expect.objectContaining({ pause: expect.any(Function) as unknown })]);
});
