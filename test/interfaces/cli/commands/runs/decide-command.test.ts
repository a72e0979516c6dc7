// `turnpike decide` asks the service that has the home open, which has registered the tools.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import Type from 'typebox';
import { openTurnpike, type Turnpike } from '../../../../../src/host/turnpike.js';
import { defineExternalTool } from '../../../../../src/runtime/effects/define-effects.js';
import { winstonLog } from '../../../../../src/system/winston-log.js';
import { join } from 'node:path';
import { writeContract } from '../../../../fixtures/bench.js';
import { serviceEdit } from '../../../../fixtures/service.js';
import { jsonLines, tempFolder, turnpike } from '../../fake-io.js';

const entity = Type.Object({ type: Type.String(), id: Type.String() }, { additionalProperties: false });
const share = defineExternalTool({
  name: 'files.share',
  input: Type.Object(
    { subject: entity, resource: entity, context: Type.Optional(Type.Object({}, { additionalProperties: false })) },
    { additionalProperties: false },
  ),
  timeout: 60_000,
});
const CONDITIONS = `@id("only_reports")
forbid (principal, action == Action::"CALL_TOOL:files.share", resource)
unless { context.args.resource.id like "report*" };
`;

let folder: string;
let service: Turnpike;
beforeEach(async () => {
  folder = tempFolder('decide');
  writeContract(join(folder, 'contract'), {
    edit: (name, text) =>
      serviceEdit(name, text).replace('tools: [billing.charge', 'tools: [files.share, billing.charge'),
    conditions: CONDITIONS,
  });
  const log = winstonLog('silent');
  service = await openTurnpike({
    home: join(folder, '.turnpike'),
    contract: join(folder, 'contract'),
    tools: [share],
    log,
  });
});
afterEach(() => service.close());

const evaluation = (id: string, name = 'files.share') => ({
  subject: { type: 'agent', id: 'helper' },
  action: { name },
  resource: { type: 'file', id },
});
const decide = (request: unknown, ...more: readonly string[]) =>
  turnpike(folder, ['decide', '--role', 'CASE_AGENT', '--lane', 'CASE_WORK', ...more], {
    stdin: typeof request === 'string' || Buffer.isBuffer(request) ? request : JSON.stringify(request),
  });

describe('decide', () => {
  test('prints and records a decision, and executes nothing', async () => {
    const { code, stdout } = await decide(evaluation('report-1'), '--json');
    expect(code).toBe(0);
    const [result] = jsonLines<{ decision: boolean; context: { call: string; run: string } }>(stdout);
    expect(result).toMatchObject({ decision: true, context: { code: 'ALLOWED' } });
    const record = await service.ledger.run(result?.context.call ?? '');
    expect(record?.status).not.toBe('completed');
    expect(await service.ledger.verify()).toMatchObject({ ok: true });
  });

  test('its outcome is reported later, once', async () => {
    const { stdout } = await decide(evaluation('report-1'), '--json');
    const [decided] = jsonLines<{ context: { call: string } }>(stdout);
    const call = decided?.context.call ?? '';
    const report = (outcome: string, result: unknown) =>
      turnpike(folder, ['runs', 'report', call, '--outcome', outcome, '--result', '-'], {
        stdin: JSON.stringify(result),
      });
    expect(await report('done', [])).toMatchObject({ code: 2, stdout: '' });
    expect(await report('done', { link: 'l-1' })).toMatchObject({ code: 0, stdout: `${call} is reported: done\n` });
    expect(await service.ledger.run(call)).toMatchObject({ status: 'completed' });
    expect(await report('done', { link: 'l-1' })).toMatchObject({ code: 0 });
    const other = await report('failed', {});
    expect(other).toMatchObject({ code: 1, stdout: '' });
    expect(other.stderr).toContain('the first report counts');
    expect(await service.ledger.verify()).toMatchObject({ ok: true });
  });

  test('denies by a condition with exit code 1, and by constant text', async () => {
    const { code, stdout } = await decide(evaluation('salaries'));
    expect(code).toBe(1);
    expect(stdout).toBe('deny POLICY_VIOLATION: A condition of the policy does not allow this\n');
  });

  test('decides several, one after the other', async () => {
    const { subject, action } = evaluation('');
    const evaluations = ['report-1', 'salaries'].map((id) => ({ resource: { type: 'file', id } }));
    const { code, stdout } = await decide({ subject, action, evaluations }, '--json');
    expect(jsonLines<{ decision: boolean }>(stdout).map(({ decision }) => decision)).toEqual([true, false]);
    expect(code).toBe(1);
  });

  test('an equal request with the same key gets the recorded decision', async () => {
    const calls = [];
    for (let i = 0; i < 2; i += 1) {
      const { stdout } = await decide(evaluation('report-1'), '--key', 'k', '--json');
      calls.push(jsonLines<{ context: { call: string } }>(stdout)[0]?.context.call);
    }
    expect(calls[0]).toBe(calls[1]);
  });

  test('a tool that is not external, or not registered, is denied', async () => {
    const { stdout } = await decide(evaluation('report-1', 'billing.charge'), '--json');
    expect(jsonLines(stdout)).toMatchObject([{ decision: false, context: { code: 'NOT_EXTERNAL' } }]);
  });

  test.each<[string, string | Buffer]>([
    ['no JSON', 'x'],
    ['no object', '[]'],
    ['no UTF-8', Buffer.concat([Buffer.from(JSON.stringify(evaluation('a'))), Buffer.of(0xff)])],
    ['no resource', JSON.stringify({ subject: { type: 'a', id: 'b' }, action: { name: 'x' } })],
    ['no evaluations', JSON.stringify({ ...evaluation('a'), evaluations: [] })],
    ['more than a mebibyte', ' '.repeat(1_048_577)],
  ])('%s is a usage error', async (_what, text) => {
    const { code, stdout, stderr } = await decide(text);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain('FILE has');
  });
});
