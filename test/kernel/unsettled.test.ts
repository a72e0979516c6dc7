import { expect, test } from '@jest/globals';
import { AGENT, TreeDriver } from '../fixtures/tree.js';

test('D8: a success under another idempotency key leaves an unknown outcome unknown', () => {
  const d = new TreeDriver().ready();
  d.act('WRITE_FILE', { path: '/sandbox/a.txt', content: 'one' });
  d.result(`${AGENT}.1.1`, { status: 'unknown' });
  const [unknown] = d.tree.unsettled;
  expect(unknown).toMatchObject({ context: { run_id: `${AGENT}.1.1` } });
  d.act('WRITE_FILE', { path: '/sandbox/b.txt', content: 'two' });
  d.done(`${AGENT}.2.1`, { bytes_written: 3 });
  expect(d.tree.unsettled).toEqual([unknown]);
});
