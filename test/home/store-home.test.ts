import { beforeEach, describe, expect, test } from '@jest/globals';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { homePaths } from '../../src/home/home-paths.js';
import {
  locateExports,
  locateHome,
  openVolume,
  readStoreHome,
  readVolume,
  writeStoreHome,
  type StoreHome,
} from '../../src/home/store-home.js';
import { tempFolder } from '../fixtures/temp-folder.js';

let folder: string;
beforeEach(() => {
  folder = tempFolder();
});

const STORED: StoreHome = {
  version: 1,
  url: 'postgres://db/ledger',
  schema: 'turnpike',
  ledger_id: 'led_000000000000',
  volume_id: 'vol_000000000000',
  keys: '/shared/keys',
  sandbox: '/shared/sandbox',
};

describe('a home that names a database', () => {
  test('has its keys, sandbox, overlay and exports where all workers find them', () => {
    writeStoreHome(folder, STORED);
    expect(readStoreHome(folder)).toEqual(STORED);
    const paths = locateHome(folder);
    expect(paths).toMatchObject({
      keys: '/shared/keys',
      caseKeys: '/shared/keys/cases',
      sandbox: '/shared/sandbox',
      overlay: '/shared/keys/overlay.json',
      head: join(folder, 'ledger.head'),
      control: join(folder, 'control.sock'),
    });
    expect(locateExports(paths)).toBe('/shared/sandbox/.exports');
    expect(() => writeStoreHome(folder, STORED)).toThrow('is a home directory already');
  });

  test.each(['', '{', '[]', JSON.stringify({ ...STORED, version: 0 }), JSON.stringify({ ...STORED, more: 1 })])(
    'is refused if its file is damaged: %p',
    (text) => {
      writeFileSync(join(folder, 'store.json'), text);
      expect(() => readStoreHome(folder)).toThrow('store.json is damaged');
    },
  );

  test('differs from a home with a ledger of its own', () => {
    expect(readStoreHome(folder)).toBeNull();
    expect(locateHome(folder)).toEqual(homePaths(folder));
    expect(locateExports(homePaths(folder))).toBe(join(folder, 'exports'));
  });
});

describe('a sandbox volume', () => {
  test('has the id and the name of its first use', () => {
    expect(readVolume(folder)).toBeNull();
    const volume = openVolume(folder, 'main');
    expect(volume).toEqual({ version: 1, name: 'main', id: expect.stringMatching(/^vol_[0-9a-f]{24}$/) });
    expect([openVolume(folder), openVolume(folder, 'main'), readVolume(folder)]).toEqual([volume, volume, volume]);
    expect(() => openVolume(folder, 'second')).toThrow('is the volume main');
    expect(openVolume(tempFolder()).name).toBe('default');
  });

  test('rejects a name with a slash, and a damaged file', () => {
    expect(() => openVolume(folder, 'a/b')).toThrow('--volume takes a name');
    writeFileSync(join(folder, 'volume.json'), '{}');
    expect(() => readVolume(folder)).toThrow('volume.json is damaged');
  });
});
