// Signing in, and who is refused.

import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { becomes, card, eventually, gone, journey, log, see, send } from './harness.mjs'
import { call } from './model.mjs'

journey('J-01 the link signs in and a first answer streams', { phone: true }, async world => {
  const gate = world.model.gate()
  world.model.on('hello', { blocks: [{ type: 'text', text: 'Hello back, this is a longer answer that arrives in parts.' }], gate, after: 1 })
  const page = await world.open(world.login, { signIn: false })
  await see(page.getByText('No sessions yet'))
  await eventually(page, () => !page.url().includes('#'), 'the code has left the address')
  await page.getByRole('button', { name: 'New session' }).click()
  const region = page.getByRole('region', { name: 'New session' })
  await becomes(page, () => region.getByRole('combobox', { name: 'Folder' }).inputValue(), world.project)
  await region.getByRole('textbox', { name: 'Message' }).fill('hello')
  await region.getByRole('button', { name: 'Start' }).click()
  await see(log(page).getByRole('article', { name: 'You' }).getByText('hello'))
  const answer = log(page).getByRole('article', { name: 'Assistant' })
  await see(answer.getByText('Hello back'))
  assert.equal((await answer.textContent()).includes('in parts'), false)
  await see(page.getByRole('button', { name: 'Stop' }))
  gate.open()
  await see(answer.getByText('arrives in parts.'))
  await page.getByRole('button', { name: 'Stop' }).waitFor({ state: 'hidden' })
  await becomes(page, () => answer.locator('.markdown').textContent(), 'Hello back, this is a longer answer that arrives in parts.')

  const [session] = (await world.api('GET', '/v1/sessions')).sessions
  await becomes(page, () => page.url(), `${world.url}/s/${session.id}`)
  const stored = (await world.events(session.id)).map(event => event.frame)
  assert.deepEqual(stored.filter(frame => frame.type === 'assistant').map(frame => frame.message.content[0].text), ['Hello back, this is a longer answer that arrives in parts.'])
  assert.ok(session.cost_usd > 0)
  if (world.device.isMobile) await page.getByRole('button', { name: 'Show details' }).click()
  await see(page.getByRole('complementary', { name: 'Details' }).getByText(/^\$0\.0/))
  if (world.device.isMobile) await page.getByRole('button', { name: 'Show details' }).click()
  const transcripts = join(world.home, '.claude', 'projects')
  const transcript = () => readFileSync(join(transcripts, readdirSync(transcripts, { recursive: true }).find(name => name.endsWith('.jsonl'))), 'utf8')
  await eventually(page, () => transcript().includes('arrives in parts'), 'the transcript has the answer')

  world.expectedErrors = [/401/]
  const second = await world.open(world.login, { signIn: false })
  await see(second.getByRole('alert'))
  await see(second.getByRole('textbox', { name: 'Code' }))
})

journey('J-02 strangers, other origins and other hosts are refused', {}, async world => {
  const { id } = await world.session('a secret prompt')
  await world.resting(id)
  const get = async (path, headers) => await fetch(`${world.url}${path}`, { headers })
  for (const path of ['/v1/sessions', `/v1/sessions/${id}`, `/v1/sessions/${id}/events`, '/v1/requests', '/v1/tokens', '/v1/usage', '/metrics', '/v1/ws']) {
    for (const headers of [{}, { Authorization: 'Bearer wk_wrong' }, { Cookie: 'whimbrel=wrong' }]) {
      const reply = await get(path, headers)
      assert.equal(reply.status, 401, path)
      assert.doesNotMatch(await reply.text(), /secret prompt/)
    }
  }
  const bearer = { Authorization: `Bearer ${world.token}` }
  const evil = await fetch(`${world.url}/v1/sessions`, { method: 'POST', headers: { ...bearer, Origin: 'https://evil.example', 'Content-Type': 'application/json' }, body: '{}' })
  assert.equal(evil.status, 403)
  assert.equal(evil.headers.get('access-control-allow-origin'), null)

  // A page of another origin in a signed-in browser: a form, a fetch and a socket.
  const page = await world.open('/')
  await see(page.getByRole('list', { name: 'Sessions' }))
  const { createServer } = await import('node:http')
  const attacker = createServer((request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' })
    response.end(`<form id="f" method="post" action="${world.url}/v1/sessions" enctype="text/plain" target="frame"><input name="x" value="1"></form><iframe name="frame"></iframe>`)
  })
  await new Promise(resolve => attacker.listen(0, '127.0.0.1', resolve))
  try {
    const port = attacker.address().port
    world.expectedErrors = [/./]
    const foreign = await page.context().newPage()
    await foreign.goto(`http://localhost:${port}/`)
    const posted = foreign.waitForResponse(reply => reply.request().method() === 'POST')
    const results = await foreign.evaluate(async url => {
      document.getElementById('f').submit()
      const socket = await new Promise(resolve => {
        const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/ws`, 'whimbrel.1')
        socket.onopen = () => resolve('open')
        socket.onerror = () => resolve('refused')
      })
      const read = await fetch(`${url}/v1/sessions`, { credentials: 'include' }).then(reply => reply.text(), () => 'refused')
      await fetch(`${url}/v1/sessions/x`, { method: 'DELETE', mode: 'no-cors', credentials: 'include' }).catch(() => {})
      return { socket, read }
    }, world.url)
    assert.deepEqual(results, { socket: 'refused', read: 'refused' })
    assert.equal((await posted).status(), 403)
    await foreign.close()
  } finally {
    attacker.close()
    attacker.closeAllConnections()
  }
  assert.equal((await world.api('GET', '/v1/sessions')).sessions.length, 1)
  assert.doesNotMatch(world.log, /secret prompt/)
})

const HOOK = { hooks: { Stop: [{ hooks: [{ type: 'command', command: 'touch hooked.txt' }] }] }, permissions: { allow: ['Bash(ls:*)'] } }

function ownSettings (world) {
  mkdirSync(join(world.project, '.claude'))
  writeFileSync(join(world.project, '.claude', 'settings.json'), JSON.stringify(HOOK))
}

journey('trust shows what it adds, is given and ended', { prepare: ownSettings }, async world => {
  world.model.on('ask me', call('Bash', { command: 'touch asked.txt' }), 'Asked.')
  const { id } = await world.session('ask me')
  const page = await world.open(`/s/${id}`)
  await see(card(page, 'Bash').getByText('adds 1 hook, 1 allow rule'))
  const details = page.getByRole('complementary', { name: 'Details' })
  await details.getByText('What trust adds').click()
  for (const text of ['Stop: touch hooked.txt', 'Bash(ls:*)']) await see(details.getByText(text))
  await card(page, 'Bash').getByRole('button', { name: 'Allow once' }).click()
  await see(log(page).getByText('Asked.'))
  await gone(page.getByRole('button', { name: 'Stop' }))
  assert.equal(world.exists('hooked.txt'), false)
  await details.getByRole('button', { name: 'Trust this folder' }).click()
  await see(details.getByRole('button', { name: 'End trust' }))
  await send(page, 'again')
  await eventually(page, () => world.exists('hooked.txt'), 'the hook of the folder runs')
  await gone(page.getByRole('button', { name: 'Stop' }))
  await details.getByRole('button', { name: 'End trust' }).click()
  await see(details.getByRole('button', { name: 'Trust this folder' }))
  assert.equal((await world.api('GET', `/v1/sessions/${id}`)).trusted, false)
})

journey('a revoked device is signed out at once', {}, async world => {
  const page = await world.open('/')
  await see(page.getByRole('status', { name: 'Connection' }).getByText('Connected'))
  const { tokens } = await world.api('GET', '/v1/tokens')
  world.expectedErrors = [/401|4401|WebSocket/]
  await world.api('DELETE', `/v1/tokens/${tokens.find(token => token.kind === 'device').id}`)
  await see(page.getByRole('textbox', { name: 'Code' }))
  await see(page.getByRole('status', { name: 'Connection' }).getByText('Signed out'))
})

journey('a second device signs in with a link from Settings', {}, async world => {
  const page = await world.open('/settings')
  await page.getByRole('button', { name: 'Add a device' }).click()
  const code = page.getByRole('dialog', { name: 'Add a device' }).locator('code')
  await see(code.getByText('/login#'))
  const link = await code.textContent()
  const second = await world.open(link, { signIn: false })
  await see(second.getByRole('button', { name: 'New session' }))
  await page.getByRole('button', { name: 'Done' }).click()
  await page.reload()
  await eventually(page, async () => await page.getByRole('table', { name: 'Devices' }).getByRole('row').count() >= 4, 'two devices and the key are listed')
})

