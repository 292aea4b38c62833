// Many sessions, long sessions, and a page of another program.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { becomes, eventually, gone, journey, log, see, send } from './harness.mjs'
import { call } from './model.mjs'

/** A transcript as the terminal leaves it. */
function transcript (world, id, title, turns, at) {
  const dir = join(world.home, '.claude', 'projects', world.project.replace(/[^a-zA-Z0-9]/g, '-'))
  mkdirSync(dir, { recursive: true })
  const lines = []
  let parent = null
  const entry = fields => {
    const uuid = crypto.randomUUID()
    lines.push(JSON.stringify({ parentUuid: parent, isSidechain: false, userType: 'external', cwd: world.project, sessionId: id, version: '2.1.325', uuid, timestamp: new Date(at + lines.length).toISOString(), ...fields }))
    parent = uuid
  }
  for (let turn = 0; turn < turns; turn++) {
    entry({ type: 'user', message: { role: 'user', content: turn === 0 ? title : `question ${turn}` } })
    entry({ type: 'assistant', message: { id: `msg_${id}_${turn}`, type: 'message', role: 'assistant', model: 'claude-sonnet-5-5', content: [{ type: 'text', text: `answer ${turn} of ${title}` }], stop_reason: 'end_turn', usage: { input_tokens: 10, output_tokens: 10 } } })
  }
  writeFileSync(join(dir, `${id}.jsonl`), lines.join('\n') + '\n')
}

const uuid = number => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`

async function manySessions (world) {
  const begin = Date.now() - 86_400_000
  for (let index = 0; index < 2000; index++) transcript(world, uuid(index), index === 7 ? 'the needle in the haystack' : `old work number ${index}`, 2, begin + index * 1000)
}

journey('J-17 two thousand sessions are searched and kept', { prepare: manySessions }, async world => {
  const page = await world.open('/')
  const list = page.getByRole('list', { name: 'Sessions' })
  await see(list.getByRole('listitem', { name: 'old work number 1999' }))
  const oldest = list.getByRole('listitem', { name: 'old work number 1755' })
  await becomes(page, () => list.getByRole('listitem').count(), 200)
  await page.getByRole('button', { name: 'Show more' }).click()
  await see(oldest)
  await becomes(page, () => list.getByRole('listitem').count(), 250)
  await page.getByRole('combobox', { name: 'Show sessions that are' }).selectOption('Interrupted')
  await see(page.getByText('Nothing found.'))
  await page.getByRole('combobox', { name: 'Show sessions that are' }).selectOption('In any state')
  await see(oldest)
  await page.getByRole('searchbox', { name: 'Search sessions' }).fill('haystack')
  const found = list.getByRole('listitem', { name: 'the needle in the haystack' })
  await see(found)
  await becomes(page, () => list.getByRole('listitem').count(), 1)

  const row = name => list.getByRole('listitem', { name, exact: true })
  const choose = async (name, item) => {
    await row(name).locator('summary').click()
    await row(name).getByRole('button', { name: item, exact: true }).click()
  }
  await choose('the needle in the haystack', 'Rename')
  await page.getByRole('textbox', { name: 'Title' }).fill('found needle')
  await page.getByRole('dialog', { name: 'Rename' }).getByRole('button', { name: 'Rename' }).click()
  await see(row('found needle'))
  await row('found needle').getByRole('link').click()
  await see(log(page).getByText('answer 1 of the needle in the haystack'))
  await send(page, 'go on')
  await see(log(page).getByText('Done.'))
  await gone(page.getByRole('button', { name: 'Stop' }))

  await page.getByRole('link', { name: 'Sessions', exact: true }).click()
  await page.getByRole('searchbox', { name: 'Search sessions' }).fill('')
  await see(row('old work number 1999'))
  await see(row('found needle'))
  await choose('found needle', 'Archive')
  await gone(row('found needle'))
  await page.getByRole('checkbox', { name: 'Archived' }).check()
  await see(row('found needle'))
  await choose('found needle', 'Delete')
  await page.getByRole('dialog', { name: 'Delete session' }).getByRole('button', { name: 'Delete' }).click()
  await gone(row('found needle'))
  const transcripts = () => readdirSync(join(world.home, '.claude', 'projects'), { recursive: true }).filter(name => name.endsWith('.jsonl'))
  await becomes(page, () => transcripts().length, 1999)
  const left = transcripts()
  assert.ok(left.every(name => !readFileSync(join(world.home, '.claude', 'projects', name), 'utf8').includes('needle in the haystack')))
})

journey('J-31 a session of ten thousand events is used without waiting', { prepare: async world => transcript(world, uuid(1), 'a very long talk', 5000, Date.now() - 86_400_000) }, async world => {
  const page = await world.open('/')
  await page.getByRole('listitem', { name: 'a very long talk' }).getByRole('link').click()
  await see(log(page).getByText('answer 4999 of a very long talk'))
  await eventually(page, async () => await log(page).getByRole('article').count() > 20, 'the last messages are drawn')
  const drawn = await log(page).getByRole('article').count()
  assert.ok(drawn < 400, `${drawn} messages are drawn`)
  const box = page.getByRole('textbox', { name: 'Message' })
  await box.focus()
  await page.keyboard.type('typing goes on')
  await becomes(page, () => box.inputValue(), 'typing goes on')
  await page.getByRole('button', { name: 'Jump to the start' }).click()
  await see(log(page).getByRole('article', { name: 'You' }).getByText('a very long talk'))
  assert.ok(await log(page).getByRole('article').count() < 400)
  await send(page, 'and the end')
  await see(log(page).getByText('Done.'))
})

journey('J-33 a page that knows only the names of Nexia works', {}, async world => {
  world.model.on('nexia', call('Bash', { command: 'touch nexia.txt' }), 'Nexia is content.')
  const { id } = await world.session(null)
  const page = await world.open('/settings')
  const messages = await page.evaluate(id => new Promise((resolve, reject) => {
    const heard = []
    const socket = new WebSocket(`ws://${location.host}/v1/nexia?session=${id}`)
    socket.onerror = () => reject(new Error('the socket failed'))
    socket.onopen = () => socket.send(JSON.stringify({ type: 'message', text: 'nexia' }))
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data)
      heard.push(message)
      if (message.type === 'permission_request') {
        socket.send(JSON.stringify({ type: 'permission_response', permissionId: 'unknown', approved: true }))
        socket.send(JSON.stringify({ type: 'permission_response', permissionId: message.permissionId, approved: true }))
      }
      if (message.type === 'result') { socket.close(); resolve(heard) }
    }
  }), id)
  const asked = messages.find(message => message.type === 'permission_request')
  assert.equal(asked.toolName, 'Bash')
  assert.deepEqual(asked.input.command, 'touch nexia.txt')
  assert.ok(messages.some(message => message.type === 'error'))
  assert.ok(messages.some(message => message.type === 'stream_event'))
  assert.equal(messages.at(-1).result, 'Nexia is content.')
  await eventually(page, () => world.exists('nexia.txt'), 'the command has run')
})

journey('the example page talks through its own server', {}, async world => {
  world.model.on('example', call('Bash', { command: 'touch example.txt' }), 'The example is content.')
  const { id } = await world.session(null)
  const script = join(import.meta.dirname, '..', '..', 'examples', 'host', 'serve_page.py')
  const server = spawn('python3', [script], { env: { PATH: process.env.PATH, WHIMBREL_HOST: world.url, WHIMBREL_KEY: world.token }, stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const [line] = await once(server.stdout, 'data')
    // From here on the page of the example is ours, and the host is reached through its server alone.
    world.url = String(line).trim().replace(/\/$/, '')
    const page = await world.open(`/?session=${id}`, { signIn: false })
    await page.getByRole('textbox', { name: 'Message' }).fill('example')
    await page.getByRole('button', { name: 'Send' }).click()
    await see(page.getByText('touch example.txt'))
    await page.getByRole('button', { name: 'Allow' }).click()
    await see(page.getByRole('log').getByText('The example is content.'))
    assert.ok(world.exists('example.txt'))
    await world.checkPages()
    await page.close()
  } finally {
    server.kill()
    await once(server, 'exit')
  }
})
