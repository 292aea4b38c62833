// Abandons a session once the file `begun` exists, by the method `params.method`.
import { watch } from 'node:fs'
import { params, printMessages, openInput, options, sdk } from './harness.mjs'

options.abortController = new AbortController()
const query = sdk.query({ prompt: openInput(params.prompts[0]), options })
const watcher = watch(process.cwd(), (_, name) => {
  if (name !== 'begun') return
  watcher.close()
  if (params.method === 'abort') options.abortController.abort()
  if (params.method === 'close') query.close()
  if (params.method === 'die') process.kill(process.pid, 'SIGKILL')
})
await printMessages(query, message => (params.method === 'break' && message.type === 'assistant' ? 'leave' : undefined))
