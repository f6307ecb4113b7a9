// Small zip archives, also damaged and hostile ones.

import { crc32, deflateRawSync } from 'node:zlib';

export interface ZipEntry {
  name: string;
  data: string | Buffer;
  /** Default 8: deflated. */
  method?: number;
  /** What the archive claims. Default: what is true. */
  size?: number;
  crc?: number;
  flags?: number;
}

/** APPNOTE.TXT 6.3: local headers with data, the central directory, its end. */
export function zip(entries: readonly ZipEntry[]): Buffer {
  const files: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, data, method = 8, size, crc, flags = 0x0800 } of entries) {
    const bytes = Buffer.from(data);
    const stored = method === 8 ? deflateRawSync(bytes) : bytes;
    const path = Buffer.from(name);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(flags, 2);
    common.writeUInt16LE(method, 4);
    common.writeUInt32LE(crc ?? crc32(bytes), 10);
    common.writeUInt32LE(stored.length, 14);
    common.writeUInt32LE(size ?? bytes.length, 18);
    common.writeUInt16LE(path.length, 22);
    files.push(Buffer.from('PK\x03\x04', 'latin1'), common, path, stored);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(offset, 10);
    directory.push(Buffer.from('PK\x01\x02\x14\x00', 'latin1'), common, rest, path);
    offset += 30 + path.length + stored.length;
  }
  const central = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(central.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...files, central, end]);
}
