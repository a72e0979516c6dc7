// A command as the first process of a container, where the kernel ignores signals that the process does not handle.

import { expect, test } from '@jest/globals';
import { EventEmitter } from 'node:events';
import { endFirstProcessOnSignals } from '../../../src/interfaces/cli/first-process.js';

class FakeProcess extends EventEmitter {
  readonly exits: number[] = [];
  readonly pid: number;

  constructor(pid: number) {
    super();
    this.pid = pid;
  }

  exit(code: number): void {
    this.exits.push(code);
  }
}

test('the first process of a container ends on a signal that its command does not handle', async () => {
  const own = new FakeProcess(1);
  endFirstProcessOnSignals(own, () => false);
  for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM']) own.emit(signal);
  await Promise.resolve();
  expect(own.exits).toEqual([129, 130, 143]);
});

test('what a command does before it ends by a signal comes first', async () => {
  const own = new FakeProcess(1);
  endFirstProcessOnSignals(own, () => false);
  let exitsBefore = -1;
  own.on('SIGINT', () => (exitsBefore = own.exits.length));
  own.emit('SIGINT');
  await Promise.resolve();
  expect([exitsBefore, own.exits]).toEqual([0, [130]]);
});

test('a command that stops by itself gets the first signal, and the second ends it', async () => {
  const own = new FakeProcess(1);
  const stopping = new AbortController();
  endFirstProcessOnSignals(own, () => !stopping.signal.aborted);
  own.once('SIGTERM', () => stopping.abort());
  own.emit('SIGTERM');
  await Promise.resolve();
  expect([own.exits, stopping.signal.aborted]).toEqual([[], true]);
  own.emit('SIGTERM');
  await Promise.resolve();
  expect(own.exits).toEqual([143]);
});

test('any other process leaves signals to the kernel', () => {
  const own = new FakeProcess(2);
  endFirstProcessOnSignals(own, () => false);
  expect(own.eventNames()).toEqual([]);
});
