# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Keys, certificates and kubeconfig files; sourced after env.sh. What exists is left alone.

make_ca() {
  if [ -s "$PKI/ca.crt" ]; then return 0; fi
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 \
    -subj "/CN=e2e-ca" -keyout "$PKI/ca.key" -out "$PKI/ca.crt" \
    -addext "basicConstraints=critical,CA:TRUE" \
    -addext "keyUsage=critical,keyCertSign,cRLSign,digitalSignature" 2>/dev/null ||
    die "openssl made no certificate authority"
}

# make_cert NAME SUBJECT [ALTERNATIVE_NAMES]    serves both as a client's and as a server's
make_cert() {
  local name=$1 subject=$2 names=IP:127.0.0.1${3:+,$3}
  if [ -s "$PKI/$name.crt" ]; then return 0; fi
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "$subject" \
    -keyout "$PKI/$name.key" 2>/dev/null |
    openssl x509 -req -CA "$PKI/ca.crt" -CAkey "$PKI/ca.key" -days 365 \
      -set_serial "0x$(openssl rand -hex 8)" -out "$PKI/$name.new" 2>/dev/null \
      -extfile <(printf '%s\n' basicConstraints=CA:FALSE \
        keyUsage=digitalSignature,keyEncipherment extendedKeyUsage=clientAuth,serverAuth \
        "subjectAltName=$names") ||
    die "openssl made no certificate for $name"
  mv "$PKI/$name.new" "$PKI/$name.crt"
}

make_token_key() { # signs the tokens of ServiceAccounts
  if [ -s "$PKI/tokens.pub" ]; then return 0; fi
  if ! openssl ecparam -name prime256v1 -genkey -noout -out "$PKI/tokens.key" 2>/dev/null ||
    ! openssl ec -in "$PKI/tokens.key" -pubout -out "$PKI/tokens.pub" 2>/dev/null; then
    die "openssl made no key for tokens"
  fi
}

# write_kubeconfig FILE CERTIFICATE_NAME
write_kubeconfig() {
  cat >"$1" <<YAML
apiVersion: v1
kind: Config
current-context: e2e
clusters:
  - name: e2e
    cluster:
      server: https://127.0.0.1:$PORT_API
      certificate-authority: $PKI/ca.crt
users:
  - name: $2
    user:
      client-certificate: $PKI/$2.crt
      client-key: $PKI/$2.key
contexts:
  - name: e2e
    context:
      cluster: e2e
      user: $2
YAML
}
