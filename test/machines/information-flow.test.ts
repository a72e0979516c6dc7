// Goal: two steps that are each allowed cannot carry what one has read to where the other writes. Method: real trees
// whose agents read, and then write or send.

import { describe, expect, test } from '@jest/globals';
import { EMPTY_LABEL, createLabel } from '../../src/core/policy/authorize-run.js';
import { restoreTree, type TreeSnapshot } from '../../src/kernel/tree.js';
import { GovernedTree, governedPolicy } from '../fixtures/governed.js';
import { AGENT, CASE, TREE } from '../fixtures/tree.js';

const OTHER = 'case-2';
const AUDIT = '    scope: { requires: [case_id, run_id], prohibits: [] }\n    audit: { required: true, level: full }\n';
/** The lane for tools and tables, with additional fields. */
const lane = (fields: string) => governedPolicy('', { lanes: [[AUDIT, `${AUDIT}${fields}`]] });
const LOOKING = lane('    cross_case_reads: true\n');
const refusing = (labels: string) => lane(`    refuses_labels: [${labels}]\n`);

/** Reads a table and gets an answer. */
function read(d: GovernedTree, target: string, more: object = {}, run_id = AGENT): void {
  const [command] = d.act('READ_RECORDS', { target, ...more }, undefined, run_id).commands;
  d.done(command!.run_id, { records: [] });
}
const write = (d: GovernedTree) => d.act('WRITE_RECORD', { target: 'facts', mode: 'append', record: { id: 'f-1' } });
const allowed = { kind: 'perform' };
const last = (d: GovernedTree) => d.traces.at(-1);
const denied = (rule_id: string) => ({ outcome: 'DENIED', cause: 'LANE', rule_id });

describe('S4-84 S4-85: content read in another case does not leave the platform', () => {
  test('each step alone is allowed, and the second after the first is denied', () => {
    const sends = new GovernedTree(LOOKING).working();
    expect(sends.call('mail.send').commands).toMatchObject([allowed]);
    const d = new GovernedTree(LOOKING).working();
    read(d, 'facts', { case_id: OTHER });
    expect(last(d)).toMatchObject({ outcome: 'SUCCESS' });
    expect(d.call('mail.send').commands).toEqual([]);
    expect(last(d)).toMatchObject(denied('platform.label_other_case'));
    expect(d.audit(`${AGENT}.2`)[0]).toMatchObject({
      outcome: 'deny',
      authz: { rule_id: 'platform.label_other_case' },
    });
  });

  test('content read in the own case may leave, if the lane permits it', () => {
    const d = new GovernedTree(LOOKING).working();
    read(d, 'facts');
    expect(d.call('mail.send').commands).toMatchObject([allowed]);
  });

  test('S4-84: no other case is read in a lane without cross_case_reads', () => {
    const d = new GovernedTree().working();
    expect(d.act('READ_RECORDS', { target: 'facts', case_id: OTHER }).commands).toEqual([]);
    expect(last(d)).toMatchObject(denied('platform.cross_case'));
    expect(d.call('mail.send').commands).toMatchObject([allowed]);
  });

  test('S4-84: another case may be read, and not written, in a lane with cross_case_reads', () => {
    const d = new GovernedTree(LOOKING).working();
    read(d, 'facts', { case_id: OTHER });
    expect(d.commands.at(-1)).toMatchObject({ effect: { args: { target: 'facts', case_id: OTHER }, case_id: CASE } });
    expect(write(d).commands).toMatchObject([{ effect: { case_id: CASE } }]);
  });

  test('a failed read adds no label', () => {
    const d = new GovernedTree(LOOKING).working();
    d.act('READ_RECORDS', { target: 'facts', case_id: OTHER });
    d.failed(`${AGENT}.1`, 'IO_ERROR');
    expect(d.call('mail.send').commands).toMatchObject([allowed]);
  });

  test('D16: the label survives a snapshot', () => {
    const d = new GovernedTree(LOOKING).working();
    read(d, 'facts', { case_id: OTHER });
    const snapshot = JSON.parse(JSON.stringify(d.tree.snapshot())) as TreeSnapshot;
    const again = restoreTree(snapshot, d.inputs[0]!.materials);
    d.call('mail.send');
    expect(again.decide(d.inputs.at(-1)!).commands).toEqual([]);
  });

  test('the label belongs only to the agent that has read', () => {
    const d = new GovernedTree(LOOKING).working(2);
    read(d, 'facts', { case_id: OTHER });
    expect(d.call('mail.send', {}, `${TREE}.2`).commands).toMatchObject([allowed]);
  });
});

describe('S4-71 S4-85: content read in another case does not become shared knowledge', () => {
  test('a promotion without content of another case is allowed, and one with it is denied', () => {
    const d = new GovernedTree().working();
    const own = d.promote({ facts: { artifact_flags: [], label: createLabel(CASE, []) } });
    expect(own.commands).toMatchObject([allowed]);
    const foreign = d.promote({ facts: { artifact_flags: [], label: createLabel(OTHER, []) } });
    expect(foreign.commands).toEqual([]);
    expect(d.endings[`${TREE}.3`]).toBe('denied:platform.label_other_case');
  });

  test('S4-85: an agent writes none, whatever its lane lists and whatever it has read', () => {
    const d = new GovernedTree(LOOKING).working();
    const share = () => d.act('WRITE_RECORD', { target: 'shared_playbooks', mode: 'append', record: { id: 'p-1' } });
    expect(share().commands).toEqual([]);
    expect(last(d)).toMatchObject(denied('platform.shared_write'));
    read(d, 'facts', { case_id: OTHER });
    expect(share().commands).toEqual([]);
    expect(last(d)).toMatchObject(denied('platform.label_other_case'));
  });
});

describe('S4-35: a lane refuses writes after certain reads', () => {
  test.each([
    ['contains_pii', 'entities', 'facts'],
    ['any_case', 'facts', 'shared_playbooks'],
  ])('%s: after %s, and not after %s', (refusal, refused, harmless) => {
    const d = new GovernedTree(refusing(refusal)).working();
    read(d, harmless);
    const written = write(d);
    expect(written.commands).toMatchObject([allowed]);
    d.done(written.commands[0]!.run_id);
    read(d, refused);
    expect(write(d).commands).toEqual([]);
    expect(last(d)).toMatchObject(denied(`label.${refusal}`));
    read(d, harmless);
    expect(write(d).commands).toEqual([]);
  });
});

test('S4-08: every mediated run records at its creation what its agent had read until then', () => {
  const d = new GovernedTree(LOOKING).working();
  read(d, 'shared_playbooks');
  read(d, 'entities');
  read(d, 'facts', { case_id: OTHER });
  write(d);
  const labels = [1, 2, 3, 4].map((ordinal) => d.created(`${AGENT}.${ordinal}`).label);
  expect(labels).toEqual([
    EMPTY_LABEL,
    EMPTY_LABEL,
    createLabel(CASE, ['contains_pii']),
    { cases: [CASE, OTHER], flags: ['contains_pii'], many: false },
  ]);
  expect([d.created(TREE).label, d.created(AGENT).label]).toEqual([null, null]);
});
