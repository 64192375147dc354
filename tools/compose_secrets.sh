#!/bin/sh
# Creates the secrets for docker-compose.yml in ./secrets; existing ones are kept.
#
# Other users cannot open the folder. Its files are world-readable, because the users in the containers
# that they are mounted into have other user ids than you.
set -eu
umask 077
mkdir -p secrets
chmod 0700 secrets

make() {
    if [ ! -e "secrets/$1" ]; then
        printf '%s' "$2" > "secrets/$1.new"
        chmod 0444 "secrets/$1.new"
        mv "secrets/$1.new" "secrets/$1"
    fi
}

random() {
    od -An -N32 -tx1 /dev/urandom | tr -d ' \n'
}

make coloop_token "$(random)"
make ray_auth_token "$(random)"
make postgres_password "$(random)"
make coloop_database_url "postgresql://coloop:$(cat secrets/postgres_password)@postgres/coloop"
