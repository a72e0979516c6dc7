// Builds the image of the Dockerfile with buildah, and runs containers of it with crun, as an engine would: by the
// configuration of the image, with a read-only root, without capabilities, and with one volume.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packInto } from '../fixtures/installed-package.js';
import { ROOT } from '../root.js';
import { makeBase, makeBuildBase, NPM_CACHE } from './base-images.js';
import { outputOf, runProgram, type ProgramEnd } from './programs.js';

/** What an image says about how it is run. */
export interface ImageConfig {
  readonly User: string;
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly WorkingDir: string;
  readonly Volumes: Readonly<Record<string, object>>;
  readonly ExposedPorts: Readonly<Record<string, object>>;
  readonly Labels: Readonly<Record<string, string>>;
  readonly StopSignal: string;
  readonly Healthcheck: { readonly Test: readonly string[] };
}

export class Image {
  readonly config: ImageConfig;
  /** The files of the image. */
  readonly root: string;
  readonly #folder: string;
  #containers = 0;

  /** Builds the image in a folder. @throws if a step of the Dockerfile fails */
  constructor(folder: string) {
    this.#folder = folder;
    const context = join(folder, 'context');
    mkdirSync(context);
    packInto(context);
    for (const name of ['Dockerfile', '.dockerignore']) copyFileSync(join(ROOT, name), join(context, name));
    // Not in the image: the archive is all that the build may see.
    writeFileSync(join(context, 'secret.txt'), 'not for the image');
    this.#makeBaseImage('build-base', makeBuildBase);
    this.#makeBaseImage('base', makeBase);
    const args = ['BUILD_BASE=localhost/build-base', 'BASE=localhost/base', 'VERSION=1.2.3'];
    this.#buildah('build', [
      ...['--isolation', 'chroot', '--format', 'docker', '--pull-never', '--tag', 'turnpike'],
      ...args.flatMap((arg) => ['--build-arg', arg]),
      ...['--volume', `${outputOf('npm', ['config', 'get', 'cache']).trim()}:${NPM_CACHE}`],
      context,
    ]);
    const { Docker } = JSON.parse(this.#buildah('inspect', ['--type', 'image', 'turnpike'])) as {
      readonly Docker: { readonly config: ImageConfig };
    };
    this.config = Docker.config;
    const container = this.#buildah('from', ['--pull-never', 'localhost/turnpike']).trim();
    this.root = this.#buildah('mount', [container]).trim();
  }

  /** Runs a container with these arguments of the command to its end. */
  run(volume: string, args: readonly string[], entrypoint = this.config.Entrypoint): ProgramEnd {
    return runProgram('unshare', this.#runArguments(volume, [...entrypoint, ...args]).args);
  }

  /** Starts a container that does what the image does by default. */
  start(volume: string): Container {
    const { args, id } = this.#runArguments(volume, [...this.config.Entrypoint, ...this.config.Cmd]);
    return new Container(
      id,
      this.config.User,
      this.#crun,
      spawn('unshare', args, { stdio: ['ignore', 'pipe', 'pipe'] }),
    );
  }

  /** Removes what a storage driver keeps open. */
  close(): void {
    this.#buildah('rm', ['--all']);
  }

  get #crun(): readonly string[] {
    return [...WITHOUT_CONTROL_GROUPS, '--cgroup-manager', 'disabled', '--root', join(this.#folder, 'crun')];
  }

  #runArguments(volume: string, args: readonly string[]): { readonly args: readonly string[]; readonly id: string } {
    this.#containers += 1;
    const id = `turnpike-${process.pid}-${this.#containers}`;
    const bundle = join(this.#folder, id);
    mkdirSync(bundle);
    writeFileSync(join(bundle, 'config.json'), JSON.stringify(runtimeConfig(this, volume, args)));
    return { args: [...this.#crun, 'run', '--bundle', bundle, id], id };
  }

  #makeBaseImage(name: string, make: (root: string) => void): void {
    const root = join(this.#folder, name);
    mkdirSync(root);
    make(root);
    const container = this.#buildah('from', ['scratch']).trim();
    this.#buildah('copy', ['--quiet', container, root, '/']);
    this.#buildah('commit', ['--quiet', '--rm', container, `localhost/${name}`]);
  }

  #buildah(command: string, args: readonly string[]): string {
    const storage = ['--storage-driver', 'vfs', '--root', join(this.#folder, 'images')];
    return outputOf('buildah', [...storage, '--runroot', join(this.#folder, 'state'), command, ...args]);
  }
}

/** Arguments of `unshare`: crun refuses a machine with both versions of control groups, which this hides from it. */
const WITHOUT_CONTROL_GROUPS: readonly string[] = [
  ...['--mount', '--', 'sh', '-c'],
  'umount -l -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; exec crun "$@"',
  'crun',
];

/** Succeeds where `run` and `start` can hide the control groups, and make the namespaces of a container. */
export const TRIAL: readonly string[] = [
  ...['unshare', '--mount', '--pid', '--fork', '--uts', '--ipc', '--', 'sh', '-c'],
  'umount -l -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup',
];

/** A container that runs. */
export class Container {
  readonly id: string;
  readonly #user: string;
  readonly #crun: readonly string[];
  readonly #process: ChildProcess;
  readonly #ended: Promise<number | null>;
  #output = '';

  constructor(id: string, user: string, crun: readonly string[], process: ChildProcess) {
    this.id = id;
    this.#user = user;
    this.#crun = crun;
    this.#process = process;
    for (const stream of [process.stdout, process.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => (this.#output += text));
    this.#ended = once(process, 'close').then(([status]) => status as number | null);
  }

  /** Everything that the container has printed. */
  get output(): string {
    return this.#output;
  }

  /** Resolves when it has printed a text. @throws if it ends before */
  async prints(pattern: RegExp): Promise<void> {
    const early = this.#ended.then((status) => {
      throw new Error(`the container ended with ${String(status)}:\n${this.#output}`);
    });
    early.catch(() => undefined);
    while (!pattern.test(this.#output)) {
      const more = [this.#process.stdout, this.#process.stderr].map((stream) => stream && once(stream, 'data'));
      await Promise.race([...more, early]);
    }
  }

  /** Runs a program in the container. */
  exec(args: readonly string[]): ProgramEnd {
    return runProgram('unshare', [...this.#crun, 'exec', '--user', this.#user, this.id, ...args]);
  }

  /** Sends a signal to the first process. @returns the exit code of the container */
  async stop(signal: string): Promise<number | null> {
    runProgram('unshare', [...this.#crun, 'kill', this.id, signal]);
    return this.#ended;
  }

  async close(): Promise<void> {
    if (this.#process.exitCode === null) await this.stop('KILL');
  }
}

/** The configuration that an engine gives the runtime for `--read-only --cap-drop ALL --volume VOLUME`. */
function runtimeConfig({ config, root }: Image, volume: string, args: readonly string[]): object {
  const [uid = 0, gid = 0] = config.User.split(':').map(Number);
  const system = ['nosuid', 'noexec', 'nodev'];
  return {
    ociVersion: '1.0.2',
    process: { user: { uid, gid }, args, env: config.Env, cwd: config.WorkingDir, noNewPrivileges: true },
    root: { path: root, readonly: true },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc', options: system },
      { destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'mode=755', 'size=64k'] },
      ...Object.keys(config.Volumes).map((destination) => ({
        destination,
        type: 'bind',
        source: volume,
        options: ['bind', 'rw', ...system],
      })),
    ],
    linux: { namespaces: ['pid', 'mount', 'ipc', 'uts', 'network'].map((type) => ({ type })) },
  };
}
