// Encodes the records of a .zip file that a bag needs: uncompressed and with a fixed time. So the same files give the
// same bytes, on every machine and with every version of zlib, and their content can be read in place.

/** A larger file would need a ZIP64 record, and its size is not known before it is written. */
export const ZIP_FILE_BYTES_MAX = 0xffff_fffe;
const MAX_32 = 0xffff_ffff;
const MAX_16 = 0xffff;

const UNIX = 3 << 8;
const VERSION = 20;
const VERSION_64 = 45;
const UTF8 = 0x800;
/** 1980-01-01, the first date of the format. */
const DATE = 0x21;
const FILE_MODE = 0o100600;
const DIRECTORY_MODE = 0o40700;
const LOCAL_BYTES = 30;
const CENTRAL_BYTES = 46;

/** An entry of the archive. The `name` of a directory ends with a slash. */
export interface ZipRecord {
  readonly name: string;
  readonly crc: number;
  readonly bytes: number;
  /** Offset of its local header. */
  readonly offset: number;
}

export const localHeaderBytes = (name: string): number => LOCAL_BYTES + Buffer.byteLength(name);

/** The header before the data. */
export function localHeader({ name, crc, bytes }: Omit<ZipRecord, 'offset'>): Buffer {
  const header = Buffer.alloc(localHeaderBytes(name));
  header.writeUInt32LE(0x04034b50, 0);
  header.writeUInt16LE(VERSION, 4);
  writeCommon(header, 6, { crc, bytes });
  header.writeUInt16LE(Buffer.byteLength(name), 26);
  header.write(name, LOCAL_BYTES);
  return header;
}

/** The header in the central directory. */
export function centralHeader({ name, crc, bytes, offset }: ZipRecord): Buffer {
  const far = offset >= MAX_32;
  const nameBytes = Buffer.byteLength(name);
  const header = Buffer.alloc(CENTRAL_BYTES + nameBytes + (far ? 12 : 0));
  header.writeUInt32LE(0x02014b50, 0);
  header.writeUInt16LE(UNIX | (far ? VERSION_64 : VERSION), 4);
  header.writeUInt16LE(far ? VERSION_64 : VERSION, 6);
  writeCommon(header, 8, { crc, bytes });
  header.writeUInt16LE(nameBytes, 28);
  header.writeUInt16LE(far ? 12 : 0, 30);
  const isDirectory = name.endsWith('/');
  header.writeUInt32LE(((isDirectory ? DIRECTORY_MODE : FILE_MODE) << 16) >>> 0, 38);
  header.writeUInt32LE(far ? MAX_32 : offset, 42);
  header.write(name, CENTRAL_BYTES);
  if (far) {
    header.writeUInt16LE(0x0001, CENTRAL_BYTES + nameBytes);
    header.writeUInt16LE(8, CENTRAL_BYTES + nameBytes + 2);
    header.writeBigUInt64LE(BigInt(offset), CENTRAL_BYTES + nameBytes + 4);
  }
  return header;
}

/** Writes the fields from the flags to the two sizes, which both kinds of header share. */
function writeCommon(header: Buffer, at: number, { crc, bytes }: Pick<ZipRecord, 'crc' | 'bytes'>): void {
  header.writeUInt16LE(UTF8, at);
  header.writeUInt16LE(DATE, at + 6);
  header.writeUInt32LE(crc, at + 8);
  header.writeUInt32LE(bytes, at + 12);
  header.writeUInt32LE(bytes, at + 16);
}

/** The end records, which locate the central directory. */
export function endRecords(directory: {
  readonly entries: number;
  readonly offset: number;
  readonly bytes: number;
}): Buffer {
  const { entries, offset, bytes } = directory;
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(Math.min(entries, MAX_16), 8);
  end.writeUInt16LE(Math.min(entries, MAX_16), 10);
  end.writeUInt32LE(Math.min(bytes, MAX_32), 12);
  end.writeUInt32LE(Math.min(offset, MAX_32), 16);
  if (entries < MAX_16 && bytes < MAX_32 && offset < MAX_32) return end;
  return Buffer.concat([end64(directory), end]);
}

function end64({ entries, offset, bytes }: Parameters<typeof endRecords>[0]): Buffer {
  const record = Buffer.alloc(56 + 20);
  record.writeUInt32LE(0x06064b50, 0);
  record.writeBigUInt64LE(44n, 4);
  record.writeUInt16LE(UNIX | VERSION_64, 12);
  record.writeUInt16LE(VERSION_64, 14);
  record.writeBigUInt64LE(BigInt(entries), 24);
  record.writeBigUInt64LE(BigInt(entries), 32);
  record.writeBigUInt64LE(BigInt(bytes), 40);
  record.writeBigUInt64LE(BigInt(offset), 48);
  record.writeUInt32LE(0x07064b50, 56);
  record.writeBigUInt64LE(BigInt(offset + bytes), 64);
  record.writeUInt32LE(1, 72);
  return record;
}
