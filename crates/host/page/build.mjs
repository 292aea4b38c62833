// Builds the page: node build.mjs OUT. The same sources and versions give the same bytes.

import { build } from 'esbuild'
import { copyFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'

const out = process.argv[2] ?? 'dist'
mkdirSync(out, { recursive: true })

await build({
  entryPoints: { page: 'src/main.ts' },
  bundle: true,
  splitting: true,
  format: 'esm',
  target: ['chrome120', 'firefox121', 'safari17.4'],
  minify: true,
  charset: 'utf8',
  legalComments: 'none',
  chunkNames: '[name]',
  outdir: out
})
await build({ entryPoints: ['src/page.css'], minify: true, charset: 'utf8', target: ['chrome123', 'firefox121', 'safari17.5'], outfile: join(out, 'page.css') })
for (const name of ['index.html', 'icon.svg']) copyFileSync(join('src', name), join(out, name))
