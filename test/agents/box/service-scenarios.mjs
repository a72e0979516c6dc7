// What is tried with each client and the whole of Turnpike: the settings that `turnpike agents install` writes, the
// command `turnpike hook`, and a service with the shipped coding policy that is killed, stopped and started again. Each
// call writes a file, because every client has a tool for that.

import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const FINISHED = { text: 'FINISHED' };
const WAIT_MS = 60_000;
/** How many calls the model asks for at once. */
const GROUP = 8;

const turns = (...calls) => [...calls.map((call) => ({ calls: [call] })), FINISHED];

async function until(condition) {
  for (const end = Date.now() + WAIT_MS; Date.now() < end; await delay(20)) if (await condition()) return;
  throw new Error('nothing happened in time');
}

/** What every scenario says about the sessions of the ledger. */
async function summary(gate) {
  const [gated, allowed, denied, reported, unknown, ungated] = await Promise.all(
    ['gated', 'allowed', 'denied', 'reported', 'unknown', 'ungated'].map((name) => gate.count(name)),
  );
  await gate.isProved();
  return { gated, allowed, denied, reported, unknown, ungated };
}

/** Every scenario, by its name. `title` is what the table says of it. */
export const SERVICE_SCENARIOS = {
  'service: calls': {
    title: 'service: allowed calls run and are reported, denied ones do not run, and the rule reaches the model',
    async run({ client, model, gate, project, runClient, exists, hasReachedModel }) {
      model.setScript(turns(client.write(`${project}/a.txt`, 'x'), client.write(`${project}/a.key`, 'x')));
      const { code } = await runClient('do it');
      const { allowed, denied, reported, ungated } = await summary(gate);
      const told = hasReachedModel('rule call.denied.secrets');
      return {
        ok: code === 0 && exists('a.txt') && !exists('a.key') && told && reported === 1 && ungated === 0,
        did: `${allowed} allowed, ${denied} denied with its rule; ${reported} reported; replay is equal`,
      };
    },
  },
  'service: approval': {
    title: 'service: a call that needs an approval runs after it, although the service was killed in between',
    async run({ client, model, gate, project, runClient, exists, hasReachedModel }) {
      const call = client.write(`${project}/reviewed/a.txt`, 'x');
      let before = null;
      let waiting = 0;
      const vote = async () => {
        before ??= exists('reviewed/a.txt');
        await gate.kill();
        await gate.start();
        waiting = await gate.approveAll();
      };
      model.setScript([{ calls: [call] }, { calls: [call], before: vote }, FINISHED]);
      await runClient('do it');
      const { reported } = await summary(gate);
      return {
        ok: before === false && waiting === 1 && exists('reviewed/a.txt') && hasReachedModel('approval pending'),
        did: `denied with "approval pending"; the repeated call ran; ${reported} reported`,
      };
    },
  },
  'service: defer': {
    title: 'service: a pending call ends the process, and runs after the approval when the session is resumed',
    clients: ['claude-code'],
    async run({ client, model, gate, project, home, runClient, exists }) {
      client.mayDefer({ home });
      model.setScript(turns(client.write(`${project}/reviewed/a.txt`, 'x')));
      const { output } = await runClient('do it', { words: ['--output-format', 'json'] });
      const { session_id, stop_reason } = JSON.parse(output);
      const before = exists('reviewed/a.txt');
      await gate.kill();
      await gate.start();
      const waiting = await gate.approveAll();
      await runClient('', { words: ['--resume', session_id] });
      const { reported, ungated } = await summary(gate);
      return {
        ok: !before && waiting === 1 && exists('reviewed/a.txt') && stop_reason === 'tool_deferred' && ungated === 0,
        did: `ended with \`tool_deferred\`; ran when it was resumed, although the service was killed; ${reported} reported`,
      };
    },
  },
  'service: killed before a call': {
    title: 'service: killed before a call: nothing runs; the next calls run when it is back',
    async run({ client, model, gate, project, runClient, exists }) {
      const [first, second, third] = ['a', 'b', 'c'].map((name) => client.write(`${project}/${name}.txt`, 'x'));
      model.setScript([
        { calls: [first] },
        { calls: [second], before: () => gate.kill() },
        { calls: [third], before: () => gate.start() },
        FINISHED,
      ]);
      await runClient('do it');
      const { allowed, ungated } = await summary(gate);
      return {
        ok: exists('a.txt') && !exists('b.txt') && exists('c.txt') && allowed === 2 && ungated === 0,
        did: 'did not run; ran when the service was back',
      };
    },
  },
  'service: killed during a call': {
    title: 'service: killed while a call runs, and started again: its outcome is reported',
    async run({ client, model, gate, folder, runClient }) {
      model.setScript(turns(client.note(`wait ${folder}`)));
      const ran = runClient('do it');
      await until(() => existsSync(join(folder, 'entered')));
      await gate.kill();
      await gate.start();
      writeFileSync(join(folder, 'go'), '');
      await ran;
      const { allowed, reported, unknown } = await summary(gate);
      return { ok: allowed === 1 && reported === 1 && unknown === 0, did: `${reported} of ${allowed} reported` };
    },
  },
  'service: away after a call': {
    title: 'service: killed while a call runs, and away when it ends: the outcome is not known',
    async run({ client, model, gate, folder, runClient }) {
      model.setScript(turns(client.note(`wait ${folder}`)));
      const ran = runClient('do it');
      await until(() => existsSync(join(folder, 'entered')));
      await gate.kill();
      writeFileSync(join(folder, 'go'), '');
      await ran;
      await gate.start();
      const [open, reported] = [await gate.count('open'), await gate.count('reported')];
      await gate.isProved();
      return { ok: open === 1 && reported === 0, did: 'recorded as open; its limit then makes it unknown' };
    },
  },
  'service: hangs': {
    title: 'service: one that does not answer stops the call in the time of the hook',
    async run({ client, model, gate, project, runClient, exists }) {
      const call = client.write(`${project}/b.txt`, 'x');
      model.setScript([
        { calls: [client.write(`${project}/a.txt`, 'x')] },
        { calls: [call], before: () => gate.stop() },
        FINISHED,
      ]);
      await runClient('do it');
      const ran = exists('b.txt');
      gate.goOn();
      await summary(gate);
      return { ok: exists('a.txt') && !ran && !exists('b.txt'), did: 'did not run' };
    },
  },
  'service: subagent': {
    title: 'service: a subagent has its own agent run, and the same policy',
    async run({ client, model, gate, project, runClient, exists }) {
      const nested = ['a.key', 'sub.txt'].map((name) => ({ calls: [client.write(`${project}/${name}`, 'x')] }));
      model.setScript({
        default: [...client.subagent('NESTED do it'), FINISHED],
        NESTED: [...nested, { text: 'nested end' }],
      });
      await runClient('do it');
      const sessions = await gate.sessions();
      const subagents = sessions.flatMap((session) => session.subagents);
      await gate.isProved();
      return {
        ok: !exists('a.key') && exists('sub.txt') && (subagents.length === 1 || client.name === 'gemini-cli'),
        did:
          subagents.length === 1
            ? 'decided in an agent run of its own'
            : 'decided in the run of the main agent: the client does not name it',
      };
    },
  },
  'service: MCP tool': {
    title: 'service: a tool of an MCP server runs if a rule names it',
    async run({ client, model, gate, runClient, hasReachedModel }) {
      model.setScript(turns(client.note('first')));
      await runClient('do it');
      const { allowed, reported } = await summary(gate);
      return { ok: hasReachedModel('noted: first') && allowed === 1, did: `ran; ${reported} reported` };
    },
  },
  'service: unsafe client': {
    title: 'service: a hook that is not in its tested form: the session is denied, with the remedy',
    async run({ client, model, gate, project, home, runClient, exists, hasReachedModel }) {
      client.loosen({ home });
      model.setScript(turns(client.write(`${project}/a.txt`, 'x')));
      await runClient('do it');
      const found = await gate.turnpike('agents', 'doctor', client.name, '--project', project).catch((e) => e.message);
      const told = hasReachedModel('agents doctor');
      return {
        ok: !exists('a.txt') && /opens/.test(found),
        did: `did not run; doctor names it; remedy ${told ? 'reached' : 'did not reach'} the model`,
      };
    },
  },
  'service: many': {
    title: 'service: many calls, 8 at a time, half of them denied; the service is killed 5 times',
    clientMs: 3_000_000,
    async run({ client, model, gate, project, runClient, exists, calls }) {
      const nameOf = (n) => (n % 2 === 0 ? `n${n}.txt` : `n${n}.key`);
      const groups = Array.from({ length: calls / GROUP }, (_, n) =>
        Array.from({ length: GROUP }, (_, k) => client.write(`${project}/${nameOf(n * GROUP + k)}`, 'x')),
      );
      const kills = new Set([1, 2, 3, 4, 5].map((n) => Math.floor((n * groups.length) / 6)));
      let restart = Promise.resolve();
      /** In the middle of the decisions of a group. */
      const killSoon = () => {
        restart = restart
          .then(() => delay(300))
          .then(() => gate.kill())
          .then(() => gate.start());
      };
      const script = groups.map((group, n) => ({ calls: group, ...(kills.has(n) ? { before: killSoon } : {}) }));
      model.setScript([...script, FINISHED]);
      await runClient('do it');
      await restart;
      const ran = Array.from({ length: calls }, (_, n) => n).filter((n) => exists(nameOf(n)));
      const { allowed, gated, ungated } = await summary(gate);
      const wrong = ran.filter((n) => n % 2 === 1).length;
      return {
        ok: wrong === 0 && ran.length <= allowed && allowed >= (calls / 2) * 0.8 && ungated === 0,
        did: `${gated} of ${calls} calls decided, ${allowed} allowed; ${ran.length} ran, ${wrong} of them without an allow`,
      };
    },
  },
};
