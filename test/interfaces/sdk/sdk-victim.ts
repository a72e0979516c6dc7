// A service with tools of an SDK, for kills.nightly.test.ts.
//
// node sdk-victim.js HOME CONTRACT FOLDER SDK notes: has one conversation after another until it is killed. The next
// process repeats the conversation that was not finished, with the same ids of calls, as an application does that has
// kept its messages.
//
// node sdk-victim.js HOME CONTRACT FOLDER SDK payment: asks for a payment that needs an approval, keeps its messages,
// and waits. The next process goes on with them, and prints the results.

import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { manifestPolicySource } from '../../../src/home/policy/manifest-policy-source.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import { openTurnpike } from '../../../src/host/turnpike.js';
import { aiSdkDriver } from './ai-sdk-driver.js';
import { langchainDriver } from './langchain-driver.js';
import { call, ToolWorld } from './sdk-scenarios.js';

const [home = '', contract = '', folder = '', sdk = '', task = ''] = process.argv.slice(2);
const CALLS = [0, 1, 2, 3];

/** Its effects outlive the process. */
class LastingWorld extends ToolWorld {
  override note = ({ text }: { readonly text: string }): { readonly noted: string } => {
    appendFileSync(join(folder, 'effects'), `${text}\n`);
    process.stdout.write('effect\n');
    return { noted: text };
  };
  override pay = ({ amount }: { readonly amount: number }): { readonly paid: number } => {
    appendFileSync(join(folder, 'effects'), `pay ${amount}\n`);
    return { paid: amount };
  };
}

const governed = await (sdk === 'ai-sdk' ? aiSdkDriver : langchainDriver)(new LastingWorld());
const policies = manifestPolicySource(contract);
const turnpike = await openTurnpike({ home, policies, tools: governed.definitions, log: winstonLog('silent') });
const who = { actor: 'sdk-agent', role: 'SDK_AGENT', lane: 'SDK_WORK', case: 'case-1' } as const;
await (task === 'payment' ? payOnce() : takeNotes());

async function takeNotes(): Promise<never> {
  const progress = join(folder, 'progress');
  let conversation = existsSync(progress) ? readFileSync(progress, 'utf8').split('\n').length - 1 : 0;
  for (;;) {
    const run = await turnpike.startAgent({ ...who, key: `chat-${conversation}` });
    const calls = CALLS.map((n) => call(`c${n}`, 'note', { text: `${conversation}.${n}` }));
    const { results } = await governed.converse({ turnpike, run }).ask(calls);
    appendFileSync(progress, `${JSON.stringify(results)}\n`);
    await run.end();
    conversation += 1;
  }
}

async function payOnce(): Promise<void> {
  const messages = join(folder, 'messages');
  const run = await turnpike.startAgent({ ...who, key: 'payment' });
  if (existsSync(messages)) {
    const conversation = governed.converse({ turnpike, run }, readFileSync(messages, 'utf8'));
    process.stdout.write(`${JSON.stringify((await conversation.resume(true)).results)}\n`);
    await turnpike.close();
    return;
  }
  const conversation = governed.converse({ turnpike, run });
  const { pending } = await conversation.ask([call('c1', 'pay', { amount: 5 })]);
  writeFileSync(messages, await conversation.state());
  process.stdout.write(`${JSON.stringify(pending)}\n`);
  await setTimeout(600_000);
}
