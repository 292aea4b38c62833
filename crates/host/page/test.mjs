// Runs the tests of the page: node test.mjs OUT. They are bundled first, since Node reads no TypeScript.

import { build } from 'esbuild'
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

const out = process.argv[2] ?? 'test-build'
const tests = readdirSync('tests').filter(name => name.endsWith('.test.ts'))
await build({
  entryPoints: tests.map(name => join('tests', name)),
  bundle: true,
  format: 'esm',
  platform: 'node',
  outdir: out,
  outExtension: { '.js': '.mjs' }
})
const files = tests.map(name => join(out, name.replace(/\.ts$/, '.mjs')))
process.exit(spawnSync(process.execPath, ['--test', '--test-reporter=spec', ...files], { stdio: 'inherit' }).status ?? 1)
