// A promotion or export whose run this process refuses: its root must not stay open, or its case could not be erased.

import { expect, test } from '@jest/globals';
import { absentSandbox } from '../../../src/sandbox/files/absent-sandbox.js';
import { Bench } from '../../fixtures/bench.js';
import { service, serviceEdit } from '../../fixtures/service.js';

test('a promotion that is refused because the sandbox is elsewhere leaves no open run tree', async () => {
  const { tools, targets } = service();
  const bench = await Bench.open({ edit: serviceEdit, tools, targets, sandbox: absentSandbox() });
  const { turnpike } = bench;
  const promotion = {
    ...{ actor: 'anna', role: 'ATTORNEY_ADMIN', case: 'case-local', ticket: 'T-17' },
    ...{ target: 'shared_playbooks', record: { id: 'p-1', text: 'Ask for the lease first.' } },
  };
  await expect(turnpike.promote(promotion)).rejects.toMatchObject({ code: 'VOLUME_ELSEWHERE' });
  await expect(turnpike.erase({ case: 'case-local', actor: 'anna' })).resolves.toBeDefined();
  await bench.close();
});
