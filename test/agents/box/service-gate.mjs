// The whole of Turnpike for one scenario: its own folder, policy and home, a service as a process of its own that can
// be killed, stopped and started again, and the settings of the client as `turnpike agents install` writes them.

import { execFile, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../../dist/src/interfaces/cli/main.js', import.meta.url));
const PROGRAM_NAMES = { 'claude-code': 'claude', codex: 'codex', 'gemini-cli': 'gemini', opencode: 'opencode' };
const COMMAND_MS = 60_000;

/** Rules besides those of the shipped policy: what needs an approval, and the tools of the MCP server. */
const RULES = `
      - id: reviewed
        tools: [native.write, native.edit, native.patch]
        decision: approval
        paths: ['reviewed/**']
      - { id: notes, tools: [native.mcp], decision: allow, names: ['notes/note'] }
`;

export class ServiceGate {
  #service = null;
  #port = 0;

  constructor({ folder, home, project, client }) {
    Object.assign(this, { folder, home, project, client });
  }

  /** Runs the command. Throws if it does not end with 0. */
  turnpike(...words) {
    const settings = ['--home', join(this.folder, 'turnpike'), '--contract', join(this.folder, 'contract')];
    const options = { cwd: this.folder, env: this.environment, timeout: COMMAND_MS };
    return new Promise((done, fail) =>
      execFile(process.execPath, [MAIN, ...words, ...settings], options, (error, stdout, stderr) =>
        error === null ? done(stdout) : fail(new Error(`turnpike ${words.join(' ')}: ${stdout}${stderr}`)),
      ),
    );
  }

  get environment() {
    return { ...process.env, HOME: this.home, PATH: `${join(this.folder, 'bin')}:${process.env.PATH}` };
  }

  /** Makes the home and the policy, installs the hooks, and starts the service. */
  async open() {
    mkdirSync(join(this.folder, 'bin'), { recursive: true });
    symlinkSync(this.client.command.at(-1), join(this.folder, 'bin', PROGRAM_NAMES[this.client.name]));
    await this.turnpike('init', '--template', 'coding');
    const policy = (name) => join(this.folder, 'contract/policy', `${name}.yaml`);
    const edit = (name, change) => writeFileSync(policy(name), change(readFileSync(policy(name), 'utf8')));
    edit('lanes', (text) =>
      text
        .replace(/( +- id: change\n(?:.+\n){2} +paths: ).+/, "$1['*']")
        .replace(/\n +- id: documentation\n/, (found) => `${RULES}${found.slice(1)}`),
    );
    edit('actions', (text) =>
      text
        .replace('denials_per_run_max: 200', 'denials_per_run_max: 1000')
        .replace(
          '  - { for: call.publish',
          '  - { for: call.reviewed, approver_roles: [APPROVER], quorum: 1, expires_minutes: 60 }\n  - { for: call.publish',
        ),
    );
    await this.turnpike('policy', 'pin', '--accept', 'action.runs', '--reason', 'They write the files of a test.');
    const place = ['--project', this.project, '--level', 'user'];
    this.installed = await this.turnpike('agents', 'install', this.client.name, ...place, '--yes');
    await this.start();
  }

  /** Starts the service, and waits until it serves. */
  async start() {
    const words = ['serve', '--hooks', '--port', String(this.#port), '--stored-tokens', '--json'];
    const settings = ['--home', join(this.folder, 'turnpike'), '--contract', join(this.folder, 'contract')];
    const service = spawn(process.execPath, [MAIN, ...words, ...settings], {
      cwd: this.folder,
      env: this.environment,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.#service = service;
    let output = '';
    await new Promise((ready, fail) => {
      service.on('close', (code) => fail(new Error(`the service ended with ${code}: ${output}`)));
      // It tells people its address when it serves.
      service.stderr.on('data', (part) => {
        output += part;
        if (output.includes('http://')) ready();
      });
    });
    service.removeAllListeners('close');
  }

  /** Ends the service without notice. */
  async kill() {
    const ended = new Promise((done) => this.#service.on('close', done));
    this.#service.kill('SIGKILL');
    await ended;
  }

  /** The service does not answer any more, but is there. */
  stop() {
    this.#service.kill('SIGSTOP');
  }

  goOn() {
    this.#service.kill('SIGCONT');
  }

  async sessions() {
    const text = await this.turnpike('agents', 'sessions', '--json');
    return text.split('\n').filter(Boolean).map(JSON.parse);
  }

  /** The sum of a count over all sessions. */
  async count(name) {
    return (await this.sessions()).reduce((sum, { coverage }) => sum + (coverage?.[name] ?? 0), 0);
  }

  /** Approves what waits for a vote. Returns how many requests there were. */
  async approveAll() {
    const text = await this.turnpike('approvals', '--json');
    const waiting = text.split('\n').filter(Boolean).map(JSON.parse);
    for (const { run_id, digest } of waiting)
      await this.turnpike('approve', run_id, digest, '--actor', 'erika', '--role', 'APPROVER');
    return waiting.length;
  }

  /** Whether the ledger verifies and the machines do the same again. */
  async isProved() {
    await this.turnpike('ledger', 'verify');
    await this.turnpike('replay');
    return true;
  }

  async close() {
    await this.kill();
  }
}
