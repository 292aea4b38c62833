// Abandons a session once the file `begun` exists, by the method `params.method`.
import { watch } from 'node:fs'
import { asked, follow, openInput, options, sdk } from './stage.mjs'

options.abortController = new AbortController()
const query = sdk.query({ prompt: openInput(asked.prompts[0]), options })
const watcher = watch(process.cwd(), (_, name) => {
  if (name !== 'begun') return
  watcher.close()
  if (asked.way === 'abort') options.abortController.abort()
  if (asked.way === 'close') query.close()
  if (asked.way === 'die') process.kill(process.pid, 'SIGKILL')
})
await follow(query, message => (asked.way === 'break' && message.type === 'assistant' ? 'leave' : undefined))
